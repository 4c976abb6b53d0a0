#include "core/kernels/norms/layer_norm.hpp"

#include "core/base/error.hpp"
#include "core/kernels/norms/layer_norm_held.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

using layer_norm::BackwardArrays;
using layer_norm::ForwardArrays;
using layer_norm::normalized;

/// Computes the mean of z (H), and 1 / sqrt(variance + epsilon), in two passes over a row that is in cache.
template <class Team, class T>
KOKKOS_FORCEINLINE_FUNCTION void row_statistics(const Team& team, const T* z, std::size_t columns, float epsilon,
                                                float& mean, float& inverse) {
  const float count = static_cast<float>(columns);
  const float center = team_sum(team, columns, [=](std::size_t i) { return float(z[i]); }) / count;
  const float squares = team_sum(team, columns, [=](std::size_t i) {
    const float difference = float(z[i]) - center;
    return difference * difference;
  });
  mean = center;
  inverse = 1.0f / Kokkos::sqrt(squares / count + epsilon);
}

template <class T>
struct Normalize : ForwardArrays<T> {
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = this->y.extent(1);
    T* const z = this->saved.input.data() + row * columns;
    const bool is_sum = this->x.data() != nullptr;
    if (is_sum) {
      add_up(team, row, z);
      team_barrier(team);
    }
    float mean, inverse;
    row_statistics(team, z, columns, this->parameters.epsilon, mean, inverse);
    this->saved.mean(row) = mean;
    this->saved.inverse(row) = inverse;
    const T *const weight = this->parameters.weight.data(), *const shift = this->parameters.bias.data();
    T* const out = this->y.data() + row * columns;
    const auto write = [=](std::size_t i, float factor) {
      out[i] = T(normalized(z[i], mean, inverse, weight[i], shift[i]) * factor);
    };
    if (is_sum) return team_for(team, columns, [=](std::size_t i) { write(i, 1.0f); });
    for_each_kept(team, this->dropout, this->rows, row, columns, write);
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_up(const Team& team, std::size_t row, T* z) const {
    const std::size_t columns = this->y.extent(1);
    const T *const in = this->x.data() + row * columns, *const other = this->residual.data() + row * columns;
    const T* const b = this->bias.data();
    for_each_kept(team, this->dropout, this->rows, row, columns, [=](std::size_t i, float factor) {
      z[i] = T(float(other[i]) + (float(in[i]) + float(b[i])) * factor);
    });
  }
};

template <class T>
struct NormalizeAgain {
  LayerNormParameters<T> parameters;
  LayerNormSaved<T> saved;
  Matrix<T> y;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = y.extent(1);
    const T* const z = saved.input.data() + row * columns;
    const T *const weight = parameters.weight.data(), *const shift = parameters.bias.data();
    const float mean = saved.mean(row), inverse = saved.inverse(row);
    T* const out = y.data() + row * columns;
    team_map(
        team, columns,
        [=](const T& input, const T& w, const T& b, T& result) { result = T(normalized(input, mean, inverse, w, b)); },
        z, weight, shift, written(out));
  }
};

/// Computes the gradient of z in one row from `dnormal`, the gradient of LayerNorm's result (before dropout, if any):
/// dz = inverse (g - mean(g) - x^ mean(g x^)), g = dnormal * weight, x^ = (z - mean) * inverse.
template <class T>
struct RowGradient {
  const T* z;
  const T* weight;
  float mean, inverse;
  float mean_g = 0.0f, mean_gx = 0.0f;

  KOKKOS_FORCEINLINE_FUNCTION float normal(std::size_t i) const { return (float(z[i]) - mean) * inverse; }
  KOKKOS_FORCEINLINE_FUNCTION float operator()(std::size_t i, float dnormal) const {
    return inverse * (dnormal * float(weight[i]) - mean_g - normal(i) * mean_gx);
  }

  template <class Team, class Gradient>
  KOKKOS_FORCEINLINE_FUNCTION void sum(const Team& team, std::size_t columns, const Gradient& dnormal) {
    const RowGradient self = *this;
    const float count = static_cast<float>(columns);
    const auto term = [=](std::size_t i, float& g, float& gx) {
      g = dnormal(i) * float(self.weight[i]);
      gx = g * self.normal(i);
    };
    team_sums(team, columns, term, mean_g, mean_gx);
    mean_g /= count;
    mean_gx /= count;
  }
};

/// Processes one block of rows of a backward pass, and computes its partial column sums.
template <class T>
struct BackwardBlock : BackwardArrays<T> {
  KOKKOS_FORCEINLINE_FUNCTION RowGradient<T> gradient(std::size_t row) const {
    return {this->saved.input.data() + row * this->dy.extent(1), this->parameters.weight.data(), this->saved.mean(row),
            this->saved.inverse(row)};
  }
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void clear(const Team& team, const Matrix<float>& partial, std::size_t block) const {
    float* const sum = partial.data() + block * partial.extent(1);
    team_for(team, partial.extent(1), [=](std::size_t i) { sum[i] = 0.0f; });
  }
};

template <class T>
struct ResidualBackward : BackwardBlock<T> {
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    this->clear(team, this->dweight, block);
    this->clear(team, this->dbias_norm, block);
    this->clear(team, this->dbias, block);
    team_barrier(team);
    for (std::size_t row = block * column_sum_rows; row < column_sum_end(block, this->dy.extent(0)); ++row)
      one_row(team, block, row);
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void one_row(const Team& team, std::size_t block, std::size_t row) const {
    const std::size_t columns = this->dy.extent(1);
    const T* const in = this->dy.data() + row * columns;
    RowGradient<T> gradient = this->gradient(row);
    gradient.sum(team, columns, [=](std::size_t i) { return float(in[i]); });
    float *const sum_w = this->dweight.data() + block * columns, *const sum_b =
                                                                     this->dbias_norm.data() + block * columns;
    float* const sum_x = this->dbias.data() + block * columns;
    T *const out_z = this->dz.data() + row * columns, *const out_x = this->dx.data() + row * columns;
    const RowGradient<T> g = gradient;
    for_each_kept(team, this->dropout, this->rows, row, columns, [=](std::size_t i, float factor) {
      const float d = float(in[i]);
      sum_w[i] += d * g.normal(i);
      sum_b[i] += d;
      const float value = g(i, d);
      out_z[i] = T(value);
      out_x[i] = T(value * factor);
      sum_x[i] += value * factor;
    });
  }
};

template <class T>
struct DropoutBackward : BackwardBlock<T> {
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    this->clear(team, this->dweight, block);
    this->clear(team, this->dbias_norm, block);
    team_barrier(team);
    for (std::size_t row = block * column_sum_rows; row < column_sum_end(block, this->dy.extent(0)); ++row)
      one_row(team, block, row);
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void one_row(const Team& team, std::size_t block, std::size_t row) const {
    const std::size_t columns = this->dy.extent(1);
    const T* const in = this->dy.data() + row * columns;
    T* const out = this->dz.data() + row * columns;
    for_each_kept(team, this->dropout, this->rows, row, columns,
                  [=](std::size_t i, float factor) { out[i] = T(float(in[i]) * factor); });
    team_barrier(team);
    RowGradient<T> gradient = this->gradient(row);
    gradient.sum(team, columns, [=](std::size_t i) { return float(out[i]); });
    float *const sum_w = this->dweight.data() + block * columns, *const sum_b =
                                                                     this->dbias_norm.data() + block * columns;
    const RowGradient<T> g = gradient;
    team_for(team, columns, [=](std::size_t i) {
      const float d = float(out[i]);
      sum_w[i] += d * g.normal(i);
      sum_b[i] += d;
      out[i] = T(g(i, d));
    });
  }
};

template <class T>
void check(const LayerNormParameters<T>& parameters, const LayerNormSaved<T>& saved, std::size_t rows,
           std::size_t columns) {
  require(parameters.weight.size() == columns && parameters.bias.size() == columns,
          fmt::format("LayerNorm of {} columns: weight has {}, bias {}", columns, parameters.weight.size(),
                      parameters.bias.size()));
  require(saved.input.extent(0) == rows && saved.input.extent(1) == columns && saved.mean.size() == rows &&
              saved.inverse.size() == rows,
          fmt::format("LayerNorm of {} x {}: saved are {} x {}, {} means, {} inverses", rows, columns,
                      saved.input.extent(0), saved.input.extent(1), saved.mean.size(), saved.inverse.size()));
}

/// Returns the work of a kernel with `flops` operations per element of a (T, H) array, which reads and writes `arrays`
/// such arrays; mean and inverse are two floats per row.
template <class T>
Work norm_work(const ConstMatrix<T>& x, double flops, double arrays) {
  return work_of(x.size(), flops, arrays * sizeof(T)) + work_of(x.extent(0), 0.0, 2.0 * sizeof(float));
}

template <class T>
void normalize(const std::string& label, const ExecutionSpace& space, const ForwardArrays<T>& arrays) {
  const std::size_t rows = arrays.y.extent(0), columns = arrays.y.extent(1);
  check(arrays.parameters, arrays.saved, rows, columns);
  for_each_held_task<Normalize<T>, layer_norm::NormalizeHeld<T>>(label, space, rows, columns, arrays);
}

}  // namespace

std::size_t column_sum_workspace(std::size_t rows, std::size_t columns) {
  return 3 * column_sum_blocks(rows) * columns;
}

template <class T>
void bias_dropout_residual_layer_norm(const ExecutionSpace& space, const DropoutKey& dropout, const DropoutRows& rows,
                                      const ConstMatrix<T>& x, const ConstVector<T>& bias,
                                      const ConstMatrix<T>& residual, const LayerNormParameters<T>& parameters,
                                      const LayerNormSaved<T>& saved, const Matrix<T>& y) {
  normalize<T>(with_work("mylos::layer_norm::bias_dropout_residual", norm_work<T>(y, 11.0, 4.0)), space,
               {dropout, rows, x, bias, residual, parameters, saved, y});
}

template <class T>
void bias_dropout_residual_layer_norm_backward(const ExecutionSpace& space, const DropoutKey& dropout,
                                               const DropoutRows& rows, const ConstMatrix<T>& dy,
                                               const LayerNormParameters<T>& parameters, const LayerNormSaved<T>& saved,
                                               const Matrix<T>& dresidual, const Matrix<T>& dx,
                                               const Vector<float>& dweight, const Vector<float>& dbias_norm,
                                               const Vector<float>& dbias, const Vector<float>& workspace) {
  const std::size_t count = dy.extent(0), columns = dy.extent(1);
  check(parameters, saved, count, columns);
  const auto partial = [&](std::size_t index) { return partial_sums(workspace, index, count, columns); };
  const BackwardArrays<T> arrays{dropout,   rows, dy,         parameters, saved,
                                 dresidual, dx,   partial(0), partial(1), partial(2)};
  for_each_long_row_task<T, ResidualBackward<T>, layer_norm::BackwardKernels<T, true>::template Held>(
      with_work("mylos::layer_norm::bias_dropout_residual_backward",
                norm_work<T>(dy, 22.0, 4.0) + work_of(3 * partial(0).size(), 0.0, sizeof(float))),
      space, column_sum_blocks(count), columns, arrays);
  add_partial_sums(space, {{partial(0), dweight}, {partial(1), dbias_norm}, {partial(2), dbias}});
}

template <class T>
void layer_norm_again(const ExecutionSpace& space, const LayerNormParameters<T>& parameters,
                      const LayerNormSaved<T>& saved, const Matrix<T>& y) {
  check(parameters, saved, y.extent(0), y.extent(1));
  for_each_row(with_work("mylos::layer_norm::again", norm_work<T>(y, 4.0, 2.0)), space, y.extent(0),
               NormalizeAgain<T>{parameters, saved, y}, team_of_row<T>(space, y.extent(1)));
}

template <class T>
void layer_norm_dropout(const ExecutionSpace& space, const DropoutKey& dropout, const DropoutRows& rows,
                        const LayerNormParameters<T>& parameters, const LayerNormSaved<T>& saved, const Matrix<T>& y) {
  normalize<T>(with_work("mylos::layer_norm::dropout", norm_work<T>(y, 9.0, 2.0)), space,
               {dropout, rows, {}, {}, {}, parameters, saved, y});
}

template <class T>
void layer_norm_dropout_backward(const ExecutionSpace& space, const DropoutKey& dropout, const DropoutRows& rows,
                                 const ConstMatrix<T>& dy, const LayerNormParameters<T>& parameters,
                                 const LayerNormSaved<T>& saved, const Matrix<T>& dz, const Vector<float>& dweight,
                                 const Vector<float>& dbias, const Vector<float>& workspace) {
  const std::size_t count = dy.extent(0), columns = dy.extent(1);
  check(parameters, saved, count, columns);
  const Matrix<float> partial_w = partial_sums(workspace, 0, count, columns);
  const Matrix<float> partial_b = partial_sums(workspace, 1, count, columns);
  const BackwardArrays<T> arrays{dropout, rows, dy, parameters, saved, dz, {}, partial_w, partial_b, {}};
  for_each_long_row_task<T, DropoutBackward<T>, layer_norm::BackwardKernels<T, false>::template Held>(
      with_work("mylos::layer_norm::dropout_backward",
                norm_work<T>(dy, 20.0, 3.0) + work_of(2 * partial_w.size(), 0.0, sizeof(float))),
      space, column_sum_blocks(count), columns, arrays);
  add_partial_sums(space, {{partial_w, dweight}, {partial_b, dbias}});
}

#define MYLOS_INSTANTIATE(T)                                                                                        \
  template void bias_dropout_residual_layer_norm<T>(                                                                \
      const ExecutionSpace&, const DropoutKey&, const DropoutRows&, const ConstMatrix<T>&, const ConstVector<T>&,   \
      const ConstMatrix<T>&, const LayerNormParameters<T>&, const LayerNormSaved<T>&, const Matrix<T>&);            \
  template void bias_dropout_residual_layer_norm_backward<T>(                                                       \
      const ExecutionSpace&, const DropoutKey&, const DropoutRows&, const ConstMatrix<T>&,                          \
      const LayerNormParameters<T>&, const LayerNormSaved<T>&, const Matrix<T>&, const Matrix<T>&,                  \
      const Vector<float>&, const Vector<float>&, const Vector<float>&, const Vector<float>&);                      \
  template void layer_norm_again<T>(const ExecutionSpace&, const LayerNormParameters<T>&, const LayerNormSaved<T>&, \
                                    const Matrix<T>&);                                                              \
  template void layer_norm_dropout<T>(const ExecutionSpace&, const DropoutKey&, const DropoutRows&,                 \
                                      const LayerNormParameters<T>&, const LayerNormSaved<T>&, const Matrix<T>&);   \
  template void layer_norm_dropout_backward<T>(const ExecutionSpace&, const DropoutKey&, const DropoutRows&,        \
                                               const ConstMatrix<T>&, const LayerNormParameters<T>&,                \
                                               const LayerNormSaved<T>&, const Matrix<T>&, const Vector<float>&,    \
                                               const Vector<float>&, const Vector<float>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
