#pragma once

#include "core/kernels/attention/attention_bfloat16.hpp"
#include "core/kernels/attention/pair_tiles.hpp"
#include "core/kernels/team.hpp"
#include "core/numeric.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

/// Operands of attention's products: blocks of a head in team scratch, as floats or, if the CPU can multiply those
/// fast, pairs of bfloat16.
namespace mylos::attention {

/// One team per head of one sequence. Work varies between sequences, hence the dynamic schedule.
using Policy = Kokkos::TeamPolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
using Team = Policy::member_type;

/// Vector registers of the CPU that a build is for, and floats in each; for a device, what a thread computes at a time.
#if defined(MYLOS_DEVICE_BUILD)
inline constexpr int vector_registers = 16, vector = 4;
#elif defined(__AVX512F__)
inline constexpr int vector_registers = 32, vector = 16;
#elif defined(__AVX__)
inline constexpr int vector_registers = 16, vector = 8;
#elif defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS > 128  // a build for registers of one size
inline constexpr int vector_registers = 32, vector = __ARM_FEATURE_SVE_BITS / 32;
#elif defined(__aarch64__)
inline constexpr int vector_registers = 32, vector = 4;
#else
inline constexpr int vector_registers = 16, vector = 4;
#endif

/// The register tile that follows: two registers of columns, and as many rows of sums as leave two registers for a row
/// of b, one for an element of a and one for the compiler. Eight rows cover the latency of a sum, and the addresses of
/// more would leave their registers. Where rows are padded, the power of two below. Results do not depend on these.
inline constexpr int tile_columns = 2 * vector, most_tile_rows = std::min(8, (vector_registers - 4) / 2);
inline constexpr int tile_rows = std::bit_floor(static_cast<unsigned>(most_tile_rows));

KOKKOS_INLINE_FUNCTION constexpr int round_up(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Two bfloat16 that are adjacent along the inner index of a product, the earlier one in the lower half.
using Pair = std::uint32_t;

/// Inner indices per operand.
template <class Operand>
inline constexpr int inner_of = std::is_same_v<Operand, Pair> ? 2 : 1;

/// Returns the number of operands that cover `inner` indices.
template <class Operand>
KOKKOS_INLINE_FUNCTION constexpr int operands_of(int inner) {
  return (inner + inner_of<Operand> - 1) / inner_of<Operand>;
}

/// Rounds both to the nearest bfloat16, ties away from zero, which needs two operations fewer than bfloat16's own
/// rounding to even. Infinities and the NaNs that arithmetic produces are preserved.
KOKKOS_FORCEINLINE_FUNCTION Pair pair_of(float first, float second) {
  const std::uint32_t low = Kokkos::bit_cast<std::uint32_t>(first) + 0x8000u;
  const std::uint32_t high = Kokkos::bit_cast<std::uint32_t>(second) + 0x8000u;
  return (low >> 16) | (high & 0xffff0000u);
}

/// Stores `value`, rounded in the same way, as element `index` of a row of pairs.
KOKKOS_FORCEINLINE_FUNCTION void put(Pair* row, int index, float value) {
  const auto half = static_cast<std::uint16_t>((Kokkos::bit_cast<std::uint32_t>(value) + 0x8000u) >> 16);
  std::memcpy(reinterpret_cast<unsigned char*>(row) + 2 * index, &half, sizeof half);
}
KOKKOS_FORCEINLINE_FUNCTION void put(float* row, int index, float value) { row[index] = value; }

/// The columns of one head in some rows of a packed matrix.
template <class T>
struct HeadRows {
  T* data;  ///< first column of the first row
  std::size_t stride;
  int head_size;
};

template <class T>
KOKKOS_INLINE_FUNCTION HeadRows<T> head_rows(const Matrix<T>& matrix, std::size_t row, std::size_t head,
                                             std::size_t head_size) {
  return {matrix.data() + row * matrix.stride(0) + head * head_size, matrix.stride(0), static_cast<int>(head_size)};
}

/// Loads operand `index` of a row of T; all columns it covers must exist.
template <class Operand, class T>
KOKKOS_FORCEINLINE_FUNCTION Operand operand_at(const T* row, int index) {
  if constexpr (std::is_same_v<Operand, Pair>) {
    Pair pair;
    std::memcpy(&pair, row + 2 * index, sizeof pair);
    return pair;
  } else {
    return static_cast<float>(row[index]);
  }
}

/// The same, with zeros beyond `columns`.
template <class Operand, class T>
KOKKOS_FORCEINLINE_FUNCTION Operand operand_within(const T* row, int index, int columns) {
  if ((index + 1) * inner_of<Operand> <= columns) return operand_at<Operand>(row, index);
  if constexpr (std::is_same_v<Operand, Pair>) {
    if (2 * index < columns) return row[2 * index].bits;
  }
  return 0;
}

/// Side of the squares in `load_transposed`, and the number of operands per load loop.
inline constexpr int square = 16;

/// Columns per panel of a transposed array. The columns that a register tile reads are contiguous over the inner index:
/// with a row for all columns, rows of 1 KiB and more would share few sets of the L1 cache.
inline constexpr int panel = tile_columns > square ? tile_columns : square;

/// to (padded_rows, depth operands) = from (rows, head size), zero beyond, for products along the columns.
template <class Operand, class T>
KOKKOS_INLINE_FUNCTION void load_columns(const Team& team, const HeadRows<const T>& from, int rows, int padded_rows,
                                         int depth, Operand* to) {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, padded_rows), [&](int row) {
    const int filled = row < rows ? from.head_size : 0;
    const T* KOKKOS_RESTRICT source = from.data + static_cast<std::size_t>(row < rows ? row : 0) * from.stride;
    Operand* KOKKOS_RESTRICT target = to + row * depth;
    int d = 0;
    for (; (d + square) * inner_of<Operand> <= filled; d += square) {
      MYLOS_ROLLED
      for (int j = 0; j < square; ++j) target[d + j] = operand_at<Operand>(source, d + j);
    }
    for (; d * inner_of<Operand> < filled; ++d) target[d] = operand_within<Operand>(source, d, filled);
    for (; d < depth; ++d) target[d] = 0;
  });
}

/// to (padded_rows, depth) = from (rows, head size), zero beyond, for products along the rows: each pair combines two
/// rows, so `to` has half as many rows. `padded_rows` must be even.
template <class T>
KOKKOS_INLINE_FUNCTION void load_rows(const Team& team, const HeadRows<const T>& from, int rows, int padded_rows,
                                      int depth, Pair* to) {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, padded_rows / 2), [&](int pair) {
    const int row = 2 * pair;
    const T* KOKKOS_RESTRICT first = from.data + static_cast<std::size_t>(row < rows ? row : 0) * from.stride;
    const T* KOKKOS_RESTRICT second = row + 1 < rows ? first + from.stride : first;
    const Pair keep = row + 1 < rows ? 0xffffffffu : (row < rows ? 0xffffu : 0u);
    Pair* KOKKOS_RESTRICT target = to + pair * depth;
    for (int d = 0; d < from.head_size; ++d) {
      target[d] = keep & (Pair{first[d].bits} | (Pair{second[d].bits} << 16));
    }
    for (int d = from.head_size; d < depth; ++d) target[d] = 0;
  });
}
template <class T>
KOKKOS_INLINE_FUNCTION void load_rows(const Team& team, const HeadRows<const T>& from, int rows, int padded_rows,
                                      int depth, float* to) {
  load_columns<float>(team, from, rows, padded_rows, depth, to);
}

/// Interleaves the halves of a square: rotates the bits of the index (row, column) left by one.
template <class Operand>
KOKKOS_INLINE_FUNCTION void shuffle(const Operand* KOKKOS_RESTRICT from, Operand* KOKKOS_RESTRICT to) {
  constexpr int half = square * square / 2;
  for (int i = 0; i < half; ++i) {
    to[2 * i] = from[i];
    to[2 * i + 1] = from[half + i];
  }
}

/// Transposes one square of `load_transposed`; zero beyond `rows` and `columns` (of T). Four shuffles transpose 16 x 16
/// operands and vectorise. Plain loops cannot be contiguous on both sides and took an eighth of the backward pass.
template <class Operand, class T>
KOKKOS_INLINE_FUNCTION void load_square(const T* KOKKOS_RESTRICT from, std::size_t from_stride, int rows, int columns,
                                        Operand* KOKKOS_RESTRICT to, int to_stride) {
  Operand a[square * square], b[square * square];
  if (rows >= square && columns >= square * inner_of<Operand>) {
    for (int i = 0; i < square; ++i) {
      MYLOS_ROLLED
      for (int j = 0; j < square; ++j) a[i * square + j] = operand_at<Operand>(from + i * from_stride, j);
    }
  } else {
    for (int i = 0; i < square * square; ++i) {
      const int row = i / square;
      a[i] = row < rows ? operand_within<Operand>(from + row * from_stride, i % square, columns) : Operand{0};
    }
  }
  shuffle(a, b);
  shuffle(b, a);
  shuffle(a, b);
  shuffle(b, a);
  for (int j = 0; j < square; ++j) {
    MYLOS_ROLLED
    for (int i = 0; i < square; ++i) to[j * to_stride + i] = a[j * square + i];
  }
}

/// Returns the operands per column of a transposed array.
template <class Operand>
KOKKOS_INLINE_FUNCTION constexpr int transposed_operands(int head_size) {
  return round_up(operands_of<Operand>(head_size), square);
}

/// to (transposed_operands, padded_rows) = transpose of from (rows, head size), zero beyond, for products along the
/// columns, in panels (`panels_of`). `padded_rows` must be a multiple of `panel`.
template <class Operand, class T>
KOKKOS_INLINE_FUNCTION void load_transposed(const Team& team, const HeadRows<const T>& from, int rows, int padded_rows,
                                            Operand* to) {
  const int operands = transposed_operands<Operand>(from.head_size), across = operands / square;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, padded_rows / square * across), [&](int index) {
    const int row = index / across * square, operand = index % across * square, column = operand * inner_of<Operand>;
    load_square(from.data + static_cast<std::size_t>(row < rows ? row : 0) * from.stride + column, from.stride,
                rows - row, from.head_size - column, to + (row / panel * operands + operand) * panel + row % panel,
                panel);
  });
}

/// to = scale[row] * from (rows, depth), for the head's columns.
template <class T, class Scale>
KOKKOS_INLINE_FUNCTION void store(const Team& team, const float* from, int rows, int depth, const Scale& scale,
                                  const HeadRows<T>& to) {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int row) {
    const float* KOKKOS_RESTRICT source = from + row * depth;
    T* KOKKOS_RESTRICT target = to.data + static_cast<std::size_t>(row) * to.stride;
    const float factor = scale(row);
    for (int d = 0; d < to.head_size; ++d) target[d] = T(factor * source[d]);
  });
}

/// The left operand of a product; element (i, k) is at i * row_stride + k * inner_stride.
template <class Operand>
struct Left {
  const Operand* data;
  int row_stride;
  int inner_stride;
};

/// The right operand of a product, in panels of columns; element (k, j) is at
/// j / panel * panel_stride + k * stride + j % panel.
template <class Operand>
struct Right {
  const Operand* data;
  int stride;
  int panel_stride;
};

/// A row-major array as the right operand.
template <class Operand>
KOKKOS_FORCEINLINE_FUNCTION Right<Operand> rows_of(const Operand* data, int stride) {
  return {data, stride, panel};
}

/// The columns from `first` of an array that `load_transposed` wrote; `first` must be a multiple of `panel`.
template <class Operand>
KOKKOS_FORCEINLINE_FUNCTION Right<Operand> panels_of(const Operand* data, int head_size, int first) {
  const int stride = transposed_operands<Operand>(head_size) * panel;
  return {data + first / panel * stride, panel, stride};
}

/// A row-major operand or result of a tile.
template <class Element>
struct Block {
  Element* data;
  int stride;
};

}  // namespace mylos::attention
