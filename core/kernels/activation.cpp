#include "core/kernels/activation.hpp"

#include "core/error.hpp"
#include "core/kernels/column_sums.hpp"
#include "core/kernels/math.hpp"
#include "core/kernels/team.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

template <class T>
struct BiasGelu {
  ConstVector<T> bias;
  Matrix<T> pre, y;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = pre.extent(1);
    const T* const b = bias.data();
    T* const p = pre.data() + row * columns;
    T* const out = y.data() + row * columns;
    team_for(team, columns, [=](std::size_t i) {
      p[i] = T(float(p[i]) + float(b[i]));
      out[i] = T(gelu(float(p[i])));
    });
  }
};

template <class T>
struct AddBias {
  ConstVector<T> bias;
  Matrix<T> x;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const T* const b = bias.data();
    T* const p = x.data() + row * x.extent(1);
    team_for(team, x.extent(1), [=](std::size_t i) { p[i] = T(float(p[i]) + float(b[i])); });
  }
};

template <class T>
struct SumBlock {
  ConstMatrix<T> x;
  Matrix<float> partial;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t columns = x.extent(1), begin = block * column_sum_rows;
    const std::size_t end = begin + column_sum_rows < x.extent(0) ? begin + column_sum_rows : x.extent(0);
    float* const sum = partial.data() + block * columns;
    team_for(team, columns, [=](std::size_t i) { sum[i] = 0.0f; });
    const T* const all = x.data();
    team_add_rows(
        team, columns, begin, end, [=](std::size_t row) { return all + row * columns; }, sum);
  }
};

void check_bias(std::size_t bias, std::size_t columns) {
  require(bias == columns, fmt::format("bias of {} elements for {} columns", bias, columns));
}

void check_equal(std::string_view what, std::size_t rows_a, std::size_t columns_a, std::size_t rows_b,
                 std::size_t columns_b) {
  require(rows_a == rows_b && columns_a == columns_b,
          fmt::format("{}: {} x {} and {} x {}", what, rows_a, columns_a, rows_b, columns_b));
}

}  // namespace

template <class T>
void bias_gelu(const ExecutionSpace& space, const ConstVector<T>& bias, const Matrix<T>& pre, const Matrix<T>& y) {
  check_bias(bias.size(), pre.extent(1));
  check_equal("bias_gelu", pre.extent(0), pre.extent(1), y.extent(0), y.extent(1));
  for_each_row("mylos::activation::bias_gelu", space, pre.extent(0), BiasGelu<T>{bias, pre, y});
}

template <class T>
void gelu(const ExecutionSpace& space, const ConstMatrix<T>& pre, const Matrix<T>& y) {
  check_equal("gelu", pre.extent(0), pre.extent(1), y.extent(0), y.extent(1));
  const T* const in = pre.data();
  T* const out = y.data();
  for_each_element(
      "mylos::activation::gelu", space, y.size(), KOKKOS_LAMBDA(std::size_t i) { out[i] = T(gelu(float(in[i]))); });
}

template <class T>
void gelu_gradient(const ExecutionSpace& space, const ConstMatrix<T>& pre, const Matrix<T>& dy) {
  check_equal("gelu_gradient", pre.extent(0), pre.extent(1), dy.extent(0), dy.extent(1));
  const T* const in = pre.data();
  T* const out = dy.data();
  for_each_element(
      "mylos::activation::gelu_gradient", space, dy.size(),
      KOKKOS_LAMBDA(std::size_t i) { out[i] = T(float(out[i]) * gelu_derivative(float(in[i]))); });
}

template <class T>
void add_bias(const ExecutionSpace& space, const ConstVector<T>& bias, const Matrix<T>& x) {
  check_bias(bias.size(), x.extent(1));
  for_each_row("mylos::activation::add_bias", space, x.extent(0), AddBias<T>{bias, x});
}

template <class T>
void add_column_sums(const ExecutionSpace& space, const ConstMatrix<T>& x, const Vector<float>& sums,
                     const Vector<float>& workspace) {
  check_bias(sums.size(), x.extent(1));
  const Matrix<float> partial = partial_sums(workspace, 0, x.extent(0), x.extent(1));
  for_each_row("mylos::activation::add_column_sums", space, partial.extent(0), SumBlock<T>{x, partial});
  add_partial_sums(space, partial, sums);
}

template <class From, class To>
void convert(const ExecutionSpace& space, const ConstVector<From>& from, const Vector<To>& to) {
  require(from.size() == to.size(), fmt::format("convert: {} elements to {}", from.size(), to.size()));
  const From* const in = from.data();
  To* const out = to.data();
  for_each_element(
      "mylos::activation::convert", space, to.size(), KOKKOS_LAMBDA(std::size_t i) { out[i] = To(float(in[i])); });
}

#define MYLOS_INSTANTIATE(T)                                                                                    \
  template void bias_gelu<T>(const ExecutionSpace&, const ConstVector<T>&, const Matrix<T>&, const Matrix<T>&); \
  template void gelu<T>(const ExecutionSpace&, const ConstMatrix<T>&, const Matrix<T>&);                        \
  template void gelu_gradient<T>(const ExecutionSpace&, const ConstMatrix<T>&, const Matrix<T>&);               \
  template void add_bias<T>(const ExecutionSpace&, const ConstVector<T>&, const Matrix<T>&);                    \
  template void add_column_sums<T>(const ExecutionSpace&, const ConstMatrix<T>&, const Vector<float>&,          \
                                   const Vector<float>&);                                                       \
  template void convert<T, float>(const ExecutionSpace&, const ConstVector<T>&, const Vector<float>&);          \
  template void convert<T, bfloat16>(const ExecutionSpace&, const ConstVector<T>&, const Vector<bfloat16>&);    \
  template void convert<T, half>(const ExecutionSpace&, const ConstVector<T>&, const Vector<half>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
