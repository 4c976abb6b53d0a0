#include "core/kernels/activation.hpp"

#include "core/base/error.hpp"
#include "core/kernels/column_sums.hpp"
#include "core/kernels/math.hpp"
#include "core/kernels/team.hpp"
#include "core/work.hpp"

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
    team_map(
        team, columns,
        [](const T& add, T& sum, T& result) {
          sum = T(float(sum) + float(add));
          result = T(gelu(float(sum)));
        },
        b, p, written(out));
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
    team_map(
        team, x.extent(1), [](const T& add, T& sum) { sum = T(float(sum) + float(add)); }, b, p);
  }
};

/// Columns per device team: 8 per thread of two warps. A host thread sums all columns of a block.
constexpr std::size_t sum_columns = 512;

/// The rows and columns that one team sums.
struct BlockPart {
  std::size_t block, begin, end;  ///< rows
  std::size_t first, columns;
};
/// Returns the part of a matrix (rows, columns) with this index; a block has `groups` of them.
KOKKOS_FORCEINLINE_FUNCTION BlockPart block_part(std::size_t index, std::size_t groups, const RowSharing& sharing,
                                                 std::size_t rows, std::size_t columns) {
  const std::size_t block = index / groups, first = index % groups * sharing.columns, rest = columns - first;
  return {block, block * column_sum_rows, column_sum_end(block, rows), first,
          rest < sharing.columns ? rest : sharing.columns};
}

template <class T>
struct SumBlock {
  ConstMatrix<T> x;
  Matrix<float> partial;
  std::size_t groups;  ///< column groups
  RowSharing sharing;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t task) const {
    const std::size_t columns = x.extent(1);
    const BlockPart part = block_part(task, groups, sharing, x.extent(0), columns);
    const T* const from = x.data() + part.first;
    team_sum_rows<SumStart::zero>(
        team, sharing, part.columns, part.begin, part.end, [=](std::size_t row) { return from + row * columns; },
        partial.data() + part.block * columns + part.first);
  }
};

/// One element of GELU's backward pass. `x` becomes gelu(x); adds the gradient, as it is stored, to `sum`.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void gelu_backward_of(T& x, T& gradient, float& sum) {
  const float before = float(x);
  gradient = T(float(gradient) * gelu_derivative(before));
  x = T(gelu(before));
  sum += float(gradient);
}

/// Processes `rows` rows of adjacent columns and writes the sums of the columns.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void gelu_backward_rows(const HostTeam& team, bool, std::size_t columns, std::size_t rows,
                                                    std::size_t stride, T* pre, T* dy, float* sum) {
  team_for(team, columns, [=](std::size_t j) { sum[j] = 0.0f; });
  for (std::size_t row = 0; row < rows; ++row) {
    T *const x = pre + row * stride, *const gradient = dy + row * stride;
    team_for(team, columns, [=](std::size_t j) { gelu_backward_of(x[j], gradient[j], sum[j]); });
  }
}

/// A thread owns `width` columns and reads several rows ahead.
template <std::size_t width, class Team, class T>
KOKKOS_FORCEINLINE_FUNCTION void gelu_backward_chunks(const Team& team, std::size_t columns, std::size_t rows,
                                                      std::size_t stride, T* pre, T* dy, float* sum) {
  constexpr std::size_t ahead = 4;
  const auto threads = static_cast<std::size_t>(team.team_size());
  for (auto item = static_cast<std::size_t>(team.team_rank()); item < columns / width; item += threads) {
    const std::size_t column = item * width;
    Chunk<float, width> total = {};
    for (std::size_t first = 0; first < rows; first += ahead) {
      Chunk<T, width> x[ahead], gradient[ahead];
      MYLOS_UNROLLED
      for (std::size_t k = 0; k < ahead; ++k) {
        if (first + k >= rows) continue;
        x[k].load(pre + (first + k) * stride + column);
        gradient[k].load(dy + (first + k) * stride + column);
      }
      MYLOS_UNROLLED
      for (std::size_t k = 0; k < ahead; ++k) {
        if (first + k >= rows) continue;
        MYLOS_UNROLLED
        for (unsigned j = 0; j < width; ++j) {
          T one = x[k][j], of_one = gradient[k][j];
          float sum_of_column = total[j];
          gelu_backward_of(one, of_one, sum_of_column);
          x[k].set(j, one);
          gradient[k].set(j, of_one);
          total.set(j, sum_of_column);
        }
        x[k].store(pre + (first + k) * stride + column);
        gradient[k].store(dy + (first + k) * stride + column);
      }
    }
    total.store(sum + column);
  }
}

template <class Team, class T>
KOKKOS_FORCEINLINE_FUNCTION void gelu_backward_rows(const Team& team, bool aligned, std::size_t columns,
                                                    std::size_t rows, std::size_t stride, T* pre, T* dy, float* sum) {
  constexpr std::size_t width = chunk_width<T*>;
  if (aligned && columns % width == 0) {
    gelu_backward_chunks<width>(team, columns, rows, stride, pre, dy, sum);
  } else {
    gelu_backward_chunks<1>(team, columns, rows, stride, pre, dy, sum);
  }
}

template <class T>
struct GeluBackwardBlock {
  Matrix<T> pre, dy;
  Matrix<float> partial;
  std::size_t groups;  ///< column groups
  RowSharing sharing;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t task) const {
    const std::size_t columns = pre.extent(1);
    const BlockPart part = block_part(task, groups, sharing, pre.extent(0), columns);
    const std::size_t at = part.begin * columns + part.first;
    gelu_backward_rows(team, sharing.aligned, part.columns, part.end - part.begin, columns, pre.data() + at,
                       dy.data() + at, partial.data() + part.block * columns + part.first);
  }
};

/// Returns how a block's columns are distributed over teams; `aligned` is that of the arrays.
template <class T>
RowSharing share_columns(std::size_t columns, bool aligned) {
  return {.columns = kernels_in_teams ? sum_columns : columns,
          .aligned = columns * sizeof(T) % access_bytes == 0 && aligned};
}

std::size_t column_groups(std::size_t columns, const RowSharing& sharing) {
  return columns == 0 ? 0 : (columns + sharing.columns - 1) / sharing.columns;
}

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
  for_each_row(with_work("mylos::activation::bias_gelu", work_of(pre.size(), 1.0 + gelu_flops, 3.0 * sizeof(T))), space,
               pre.extent(0), BiasGelu<T>{bias, pre, y}, team_of_row<T>(space, pre.extent(1)));
}

template <class T>
void gelu(const ExecutionSpace& space, const ConstMatrix<T>& pre, const Matrix<T>& y) {
  check_equal("gelu", pre.extent(0), pre.extent(1), y.extent(0), y.extent(1));
  const T* const in = pre.data();
  T* const out = y.data();
  for_each_element(
      with_work("mylos::activation::gelu", work_of(y.size(), gelu_flops, 2.0 * sizeof(T))), space, y.size(),
      KOKKOS_LAMBDA(const T& x, T& result) { result = T(gelu(float(x))); }, in, written(out));
}

template <class T>
void gelu_backward(const ExecutionSpace& space, const Matrix<T>& pre, const Matrix<T>& dy, const Vector<float>& sums,
                   const Vector<float>& workspace) {
  check_equal("gelu_backward", pre.extent(0), pre.extent(1), dy.extent(0), dy.extent(1));
  check_bias(sums.size(), pre.extent(1));
  const Matrix<float> partial = partial_sums(workspace, 0, pre.extent(0), pre.extent(1));
  const RowSharing sharing = share_columns<T>(pre.extent(1), are_aligned(pre.data(), dy.data(), partial.data()));
  const std::size_t groups = column_groups(pre.extent(1), sharing);
  constexpr double flops = gelu_flops + gelu_derivative_flops + 2.0;
  for_each_row(with_work("mylos::activation::gelu_backward",
                         work_of(pre.size(), flops, 4.0 * sizeof(T)) + work_of(partial.size(), 0.0, sizeof(float))),
               space, partial.extent(0) * groups, GeluBackwardBlock<T>{pre, dy, partial, groups, sharing},
               sharing.shape(space, access_bytes / sizeof(T)));
  add_partial_sums(space, {{partial, sums}});
}

template <class T>
void add_bias(const ExecutionSpace& space, const ConstVector<T>& bias, const Matrix<T>& x) {
  check_bias(bias.size(), x.extent(1));
  for_each_row(with_work("mylos::activation::add_bias", work_of(x.size(), 1.0, 2.0 * sizeof(T))), space, x.extent(0),
               AddBias<T>{bias, x}, team_of_row<T>(space, x.extent(1)));
}

template <class T>
void add_column_sums(const ExecutionSpace& space, const ConstMatrix<T>& x, const Vector<float>& sums,
                     const Vector<float>& workspace) {
  check_bias(sums.size(), x.extent(1));
  const Matrix<float> partial = partial_sums(workspace, 0, x.extent(0), x.extent(1));
  const RowSharing sharing = share_columns<T>(x.extent(1), are_aligned(x.data(), partial.data()));
  const std::size_t groups = column_groups(x.extent(1), sharing);
  for_each_row(with_work("mylos::activation::add_column_sums",
                         work_of(x.size(), 1.0, sizeof(T)) + work_of(partial.size(), 0.0, sizeof(float))),
               space, partial.extent(0) * groups, SumBlock<T>{x, partial, groups, sharing},
               sharing.shape(space, access_bytes / sizeof(T)));
  add_partial_sums(space, {{partial, sums}});
}

template <class From, class To>
void convert(const ExecutionSpace& space, const ConstVector<From>& from, const Vector<To>& to) {
  require(from.size() == to.size(), fmt::format("convert: {} elements to {}", from.size(), to.size()));
  const From* const in = from.data();
  To* const out = to.data();
  for_each_element(
      with_work("mylos::activation::convert", work_of(to.size(), 0.0, sizeof(From) + sizeof(To))), space, to.size(),
      KOKKOS_LAMBDA(const From& x, To& result) { result = To(float(x)); }, in, written(out));
}

#define MYLOS_INSTANTIATE(T)                                                                                      \
  template void bias_gelu<T>(const ExecutionSpace&, const ConstVector<T>&, const Matrix<T>&, const Matrix<T>&);   \
  template void gelu<T>(const ExecutionSpace&, const ConstMatrix<T>&, const Matrix<T>&);                          \
  template void gelu_backward<T>(const ExecutionSpace&, const Matrix<T>&, const Matrix<T>&, const Vector<float>&, \
                                 const Vector<float>&);                                                           \
  template void add_bias<T>(const ExecutionSpace&, const ConstVector<T>&, const Matrix<T>&);                      \
  template void add_column_sums<T>(const ExecutionSpace&, const ConstMatrix<T>&, const Vector<float>&,            \
                                   const Vector<float>&);                                                         \
  template void convert<T, float>(const ExecutionSpace&, const ConstVector<T>&, const Vector<float>&);            \
  template void convert<T, bfloat16>(const ExecutionSpace&, const ConstVector<T>&, const Vector<bfloat16>&);      \
  template void convert<T, half>(const ExecutionSpace&, const ConstVector<T>&, const Vector<half>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
