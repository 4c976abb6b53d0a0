#include "core/kernels/norms/rms_norm.hpp"

#include "core/base/error.hpp"
#include "core/kernels/norms/rms_norm_held.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

/// y = z inverse weight for one row of `columns` elements.
template <class Team, class T>
KOKKOS_FORCEINLINE_FUNCTION void scale_row(const Team& team, std::size_t columns, const T* z, float inverse,
                                           const T* weight, T* y) {
  team_map(
      team, columns, [=](const T& input, const T& w, T& result) { result = rms_norm::scaled(input, inverse, w); }, z,
      weight, written(y));
}

template <class T>
struct RmsNormRow : rms_norm::ForwardArrays<T> {
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = this->y.extent(1);
    T* const z = this->saved.input.data() + row * columns;
    if (this->residual.data() != nullptr) {
      const T* const other = this->residual.data() + row * columns;
      team_map(
          team, columns, [](const T& add, T& sum) { sum = T(float(sum) + float(add)); }, other, z);
      team_barrier(team);
    }
    const float squares = team_map_sum<float>(
        team, columns, [](const T& value) { return float(value) * float(value); }, static_cast<const T*>(z));
    const float inverse = 1.0f / Kokkos::sqrt(squares / static_cast<float>(columns) + this->parameters.epsilon);
    this->saved.inverse(row) = inverse;
    scale_row(team, columns, static_cast<const T*>(z), inverse, this->parameters.weight.data(),
              this->y.data() + row * columns);
  }
};

template <class T>
struct RmsNormRowAgain {
  RmsNormParameters<T> parameters;
  RmsNormSaved<T> saved;
  Matrix<T> y;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = y.extent(1);
    const T* const z = saved.input.data() + row * columns;
    scale_row(team, columns, z, saved.inverse(row), parameters.weight.data(), y.data() + row * columns);
  }
};

/// Processes one block of rows: dz += inverse (g - x^ mean(g x^)) with g = dy weight and x^ = z inverse; partial sums
/// of dy x^.
template <class T>
struct RmsNormBackwardBlock : rms_norm::BackwardArrays<T> {
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t columns = this->dy.extent(1), begin = block * column_sum_rows,
                      end = column_sum_end(block, this->dy.extent(0));
    float* const sum = this->partial.data() + block * columns;
    team_for(team, columns, [=](std::size_t i) { sum[i] = 0.0f; });
    team_barrier(team);
    for (std::size_t row = begin; row < end; ++row) add_row(team, row, sum);
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_row(const Team& team, std::size_t row, float* sum) const {
    const std::size_t columns = this->dy.extent(1);
    const T *const z = this->saved.input.data() + row * columns, *const weight = this->parameters.weight.data();
    const T* const gradient = this->dy.data() + row * columns;
    T* const out = this->dz.data() + row * columns;
    const float inverse = this->saved.inverse(row);
    const float mean =
        team_sum(team, columns,
                 [=](std::size_t i) { return float(gradient[i]) * float(weight[i]) * (float(z[i]) * inverse); }) /
        static_cast<float>(columns);
    team_for(team, columns, [=](std::size_t i) {
      const float normal = float(z[i]) * inverse, d = float(gradient[i]);
      out[i] = T(float(out[i]) + inverse * (d * float(weight[i]) - normal * mean));
      sum[i] += d * normal;
    });
  }
};

template <class T>
void check_rms_norm(const RmsNormParameters<T>& parameters, const RmsNormSaved<T>& saved, std::size_t rows,
                    std::size_t columns) {
  require(parameters.weight.size() == columns,
          fmt::format("RMSNorm of {} columns: weight has {}", columns, parameters.weight.size()));
  require(saved.input.extent(0) == rows && saved.input.extent(1) == columns && saved.inverse.size() == rows,
          fmt::format("RMSNorm of {} x {}: saved are {} x {} and {} inverses", rows, columns, saved.input.extent(0),
                      saved.input.extent(1), saved.inverse.size()));
}

/// Returns the work of a kernel, as in layer_norm.cpp: `flops` per element of a (T, H) array, and the number of such
/// arrays read or written; `inverse` is one float per row.
template <class T>
Work rms_norm_work(const ConstMatrix<T>& x, double flops, double arrays) {
  return work_of(x.size(), flops, arrays * sizeof(T)) + work_of(x.extent(0), 0.0, sizeof(float));
}

}  // namespace

template <class T>
void residual_rms_norm(const ExecutionSpace& space, const ConstMatrix<T>& residual,
                       const RmsNormParameters<T>& parameters, const RmsNormSaved<T>& saved, const Matrix<T>& y) {
  check_rms_norm(parameters, saved, y.extent(0), y.extent(1));
  const bool is_sum = residual.data() != nullptr;
  require(!is_sum || (residual.extent(0) == y.extent(0) && residual.extent(1) == y.extent(1)),
          fmt::format("RMSNorm of {} x {}: the residual is {} x {}", y.extent(0), y.extent(1), residual.extent(0),
                      residual.extent(1)));
  const char* const label = is_sum ? with_work("mylos::rms_norm::residual", rms_norm_work<T>(y, 5.0, 4.0))
                                   : with_work("mylos::rms_norm::forward", rms_norm_work<T>(y, 4.0, 2.0));
  for_each_held_task<RmsNormRow<T>, rms_norm::NormalizeHeld<T>>(
      label, space, y.extent(0), y.extent(1), rms_norm::ForwardArrays<T>{residual, parameters, saved, y},
      team_of_row<T>(space, y.extent(1)));
}

template <class T>
void rms_norm_again(const ExecutionSpace& space, const RmsNormParameters<T>& parameters, const RmsNormSaved<T>& saved,
                    const Matrix<T>& y) {
  check_rms_norm(parameters, saved, y.extent(0), y.extent(1));
  for_each_row(with_work("mylos::rms_norm::again", rms_norm_work<T>(y, 2.0, 2.0)), space, y.extent(0),
               RmsNormRowAgain<T>{parameters, saved, y}, team_of_row<T>(space, y.extent(1)));
}

template <class T>
void rms_norm_backward(const ExecutionSpace& space, const RmsNormParameters<T>& parameters,
                       const RmsNormSaved<T>& saved, const ConstMatrix<T>& dy, const Matrix<T>& dz,
                       const Vector<float>& dweight, const Vector<float>& workspace) {
  check_rms_norm(parameters, saved, dy.extent(0), dy.extent(1));
  require(dz.extent(0) == dy.extent(0) && dz.extent(1) == dy.extent(1),
          fmt::format("RMSNorm of {} x {}: dz is {} x {}", dy.extent(0), dy.extent(1), dz.extent(0), dz.extent(1)));
  const Matrix<float> partial = partial_sums(workspace, 0, dy.extent(0), dy.extent(1));
  for_each_long_row_task<T, RmsNormBackwardBlock<T>, rms_norm::BackwardKernels<T>::template Held>(
      with_work("mylos::rms_norm::backward",
                rms_norm_work<T>(dy, 13.0, 4.0) + work_of(partial.size(), 0.0, sizeof(float))),
      space, partial.extent(0), dy.extent(1), rms_norm::BackwardArrays<T>{parameters, saved, dy, dz, partial});
  add_partial_sums(space, {{partial, dweight}});
}

#define MYLOS_INSTANTIATE(T)                                                                                     \
  template void residual_rms_norm<T>(const ExecutionSpace&, const ConstMatrix<T>&, const RmsNormParameters<T>&,  \
                                     const RmsNormSaved<T>&, const Matrix<T>&);                                  \
  template void rms_norm_again<T>(const ExecutionSpace&, const RmsNormParameters<T>&, const RmsNormSaved<T>&,    \
                                  const Matrix<T>&);                                                             \
  template void rms_norm_backward<T>(const ExecutionSpace&, const RmsNormParameters<T>&, const RmsNormSaved<T>&, \
                                     const ConstMatrix<T>&, const Matrix<T>&, const Vector<float>&,              \
                                     const Vector<float>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
