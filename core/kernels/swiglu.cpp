#include "core/kernels/swiglu.hpp"

#include "core/base/error.hpp"
#include "core/kernels/chunks.hpp"
#include "core/kernels/math.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

constexpr double sigmoid_flops = exp_flops + 3.0;

KOKKOS_FORCEINLINE_FUNCTION float sigmoid(float x) { return 1.0f / (1.0f + exp_approximate(-x)); }

template <class T>
struct SwigluRow {
  ConstMatrix<T> gate_up;
  Matrix<T> y;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = y.extent(1);
    const T* const gate = gate_up.data() + row * 2 * columns;
    team_map(
        team, columns, [](const T& g, const T& up, T& result) { result = T(float(g) * sigmoid(float(g)) * float(up)); },
        gate, gate + columns, written(y.data() + row * columns));
  }
};

template <class T>
struct SwigluBackwardRow {
  Matrix<T> gate_up, dy;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = dy.extent(1);
    T* const gate = gate_up.data() + row * 2 * columns;
    team_map(
        team, columns,
        [](T& gate_value, T& up_value, T& gradient) {
          const float g = float(gate_value), up = float(up_value), d = float(gradient), s = sigmoid(g);
          gate_value = T(d * up * (s * (1.0f + g * (1.0f - s))));
          up_value = T(d * (g * s));
          gradient = T(g * s * up);
        },
        gate, gate + columns, dy.data() + row * columns);
  }
};

void check_swiglu(std::size_t rows_in, std::size_t columns_in, std::size_t rows, std::size_t columns) {
  require(rows_in == rows && columns_in == 2 * columns,
          fmt::format("swiglu: gate and up of {} x {} for {} x {}", rows_in, columns_in, rows, columns));
}

}  // namespace

template <class T>
void swiglu(const ExecutionSpace& space, const ConstMatrix<T>& gate_up, const Matrix<T>& y) {
  check_swiglu(gate_up.extent(0), gate_up.extent(1), y.extent(0), y.extent(1));
  for_each_row(with_work("mylos::swiglu::forward", work_of(y.size(), sigmoid_flops + 2.0, 3.0 * sizeof(T))), space,
               y.extent(0), SwigluRow<T>{gate_up, y}, team_of_row<T>(space, y.extent(1)));
}

template <class T>
void swiglu_backward(const ExecutionSpace& space, const Matrix<T>& gate_up, const Matrix<T>& dy) {
  check_swiglu(gate_up.extent(0), gate_up.extent(1), dy.extent(0), dy.extent(1));
  for_each_row(with_work("mylos::swiglu::backward", work_of(dy.size(), sigmoid_flops + 9.0, 6.0 * sizeof(T))), space,
               dy.extent(0), SwigluBackwardRow<T>{gate_up, dy}, team_of_row<T>(space, dy.extent(1)));
}

#define MYLOS_INSTANTIATE(T)                                                               \
  template void swiglu<T>(const ExecutionSpace&, const ConstMatrix<T>&, const Matrix<T>&); \
  template void swiglu_backward<T>(const ExecutionSpace&, const Matrix<T>&, const Matrix<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
