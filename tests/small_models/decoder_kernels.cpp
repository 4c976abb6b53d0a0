#include "tests/small_models/decoder_kernels.hpp"

#include "core/kernels/column_sums.hpp"
#include "core/kernels/math.hpp"
#include "core/kernels/team.hpp"

namespace mylos::small_models {
namespace {

struct RmsNorm {
  ConstVector<float> weight;
  float epsilon;
  ConstMatrix<float> x;
  Vector<float> inverse;
  Matrix<float> y;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = x.extent(1);
    const float *const in = x.data() + row * columns, *const w = weight.data();
    float* const out = y.data() + row * columns;
    const float squares = team_sum(team, columns, [=](std::size_t i) { return in[i] * in[i]; });
    const float factor = 1.0f / Kokkos::sqrt(squares / float(columns) + epsilon);
    inverse(row) = factor;
    team_for(team, columns, [=](std::size_t i) { out[i] = in[i] * factor * w[i]; });
  }
};

/// One block of rows: dx += inverse (g - x^ mean(g x^)) for g = dy weight, x^ = x inverse; and partial sums of dy x^.
struct RmsNormBackward {
  ConstVector<float> weight;
  ConstMatrix<float> x;
  ConstVector<float> inverse;
  ConstMatrix<float> dy;
  Matrix<float> dx, partial;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t columns = x.extent(1), begin = block * column_sum_rows;
    const std::size_t end = begin + column_sum_rows < x.extent(0) ? begin + column_sum_rows : x.extent(0);
    const float* const w = weight.data();
    float* const sum = partial.data() + block * columns;
    team_for(team, columns, [=](std::size_t i) { sum[i] = 0.0f; });
    for (std::size_t row = begin; row < end; ++row) {
      const float *const in = x.data() + row * columns, *const gradient = dy.data() + row * columns;
      float* const out = dx.data() + row * columns;
      const float factor = inverse(row);
      const float mean =
          team_sum(team, columns, [=](std::size_t i) { return gradient[i] * w[i] * in[i] * factor; }) / float(columns);
      team_for(team, columns, [=](std::size_t i) {
        const float normal = in[i] * factor;
        out[i] += factor * (gradient[i] * w[i] - normal * mean);
        sum[i] += gradient[i] * normal;
      });
    }
  }
};

KOKKOS_INLINE_FUNCTION float sigmoid(float x) { return 1.0f / (1.0f + exp_approximate(-x)); }

}  // namespace

void rms_norm(const ExecutionSpace& space, const ConstVector<float>& weight, float epsilon, const ConstMatrix<float>& x,
              const Vector<float>& inverse, const Matrix<float>& y) {
  for_each_row("mylos::small_models::rms_norm", space, x.extent(0), RmsNorm{weight, epsilon, x, inverse, y});
}

void rms_norm_backward(const ExecutionSpace& space, const ConstVector<float>& weight, const ConstMatrix<float>& x,
                       const ConstVector<float>& inverse, const ConstMatrix<float>& dy, const Matrix<float>& dx,
                       const Vector<float>& dweight, const Vector<float>& workspace) {
  const Matrix<float> partial = partial_sums(workspace, 0, x.extent(0), x.extent(1));
  for_each_row("mylos::small_models::rms_norm_backward", space, partial.extent(0),
               RmsNormBackward{weight, x, inverse, dy, dx, partial});
  add_partial_sums(space, {{partial, dweight}});
}

void swiglu(const ExecutionSpace& space, const ConstMatrix<float>& gate_up, const Matrix<float>& y) {
  const std::size_t columns = y.extent(1);
  for_each_element(
      "mylos::small_models::swiglu", space, y.size(), KOKKOS_LAMBDA(std::size_t i) {
        const float* const row = gate_up.data() + i / columns * 2 * columns + i % columns;
        y.data()[i] = row[0] * sigmoid(row[0]) * row[columns];
      });
}

void swiglu_backward(const ExecutionSpace& space, const ConstMatrix<float>& gate_up, const ConstMatrix<float>& dy,
                     const Matrix<float>& dgate_up) {
  const std::size_t columns = dy.extent(1);
  for_each_element(
      "mylos::small_models::swiglu_backward", space, dy.size(), KOKKOS_LAMBDA(std::size_t i) {
        const std::size_t position = i / columns * 2 * columns + i % columns;
        const float gate = gate_up.data()[position], up = gate_up.data()[position + columns], s = sigmoid(gate);
        dgate_up.data()[position] = dy.data()[i] * up * s * (1.0f + gate * (1.0f - s));
        dgate_up.data()[position + columns] = dy.data()[i] * gate * s;
      });
}

void add(const ExecutionSpace& space, const ConstMatrix<float>& x, const Matrix<float>& y) {
  for_each_element(
      "mylos::small_models::add", space, y.size(), KOKKOS_LAMBDA(std::size_t i) { y.data()[i] += x.data()[i]; });
}

}  // namespace mylos::small_models
