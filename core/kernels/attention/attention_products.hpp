#pragma once

#include "core/kernels/attention/attention_operands.hpp"
#include "core/kernels/attention/pair_tiles.hpp"
#include "core/kernels/team.hpp"

#include <cstring>
#include <type_traits>
#include <utility>
#if defined(MYLOS_MULTIPLIES_PAIRS) && defined(__x86_64__)
#include <immintrin.h>
#elif defined(MYLOS_MULTIPLIES_PAIRS)
#include <arm_neon.h>
#endif

/// Products of blocks of a head, most of which are in team scratch; results are floats. A product is cut into register
/// tiles that are distributed over the threads of a team. The loops inside a tile have constant trip counts and
/// contiguous loads, so that host compilers keep its sums in vector registers.
namespace mylos::attention {

#if defined(MYLOS_DEVICE_BUILD)
/// Computes one register tile of `product`.
template <int columns>
KOKKOS_INLINE_FUNCTION void tile_product(int inner, Left<float> a, Block<const float> b, bool accumulate,
                                         Block<float> c) {
  float sum[tile_rows][columns] = {};
  for (int k = 0; k < inner; ++k) {
    const float* left = a.data + k * a.inner_stride;
    const float* right = b.data + k * b.stride;
    for (int i = 0; i < tile_rows; ++i) {
      const float x = left[i * a.row_stride];
      for (int j = 0; j < columns; ++j) sum[i][j] += x * right[j];
    }
  }
  for (int i = 0; i < tile_rows; ++i) {
    float* KOKKOS_RESTRICT result = c.data + i * c.stride;
    for (int j = 0; j < columns; ++j) result[j] = (accumulate ? result[j] : 0.0f) + sum[i][j];
  }
}
#else
/// A vector register.
using Register = float __attribute__((vector_size(vector * sizeof(float))));

KOKKOS_FORCEINLINE_FUNCTION Register load(const float* from) {
  Register x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

/// Loads `from`, which is then not read again: compilers for x86 would take b from memory in every multiply-add, and
/// loads would bound the loop.
KOKKOS_FORCEINLINE_FUNCTION Register load_once(const float* from) {
  Register x = load(from);
#if defined(__x86_64__)
  asm("" : "+v"(x));
#endif
  return x;
}

/// Computes one register tile of `product`, or its first `height` rows. Takes references: the halves of a block that is
/// passed in memory are written apart and read together, which waits for the writes.
template <int columns, int height = tile_rows>
inline void tile_product(int inner, const Left<float>& a, const Block<const float>& b, bool accumulate,
                         const Block<float>& c) {
  constexpr int vectors = columns / vector, registers = height * vectors;
  Register sum[registers];
  const auto result = [&](auto r) { return c.data + r / vectors * c.stride + r % vectors * vector; };
  unrolled<registers>([&](auto r) { sum[r] = Register{}; });
  for (int k = 0; k < inner; ++k) {
    const float* const left = a.data + k * a.inner_stride;
    const float* const right = b.data + k * b.stride;
    Register of_b[vectors];
    unrolled<vectors>([&](auto v) { of_b[v] = load_once(right + v * vector); });
    unrolled<height>([&](auto i) {
      const float x = left[i * a.row_stride];
      unrolled<vectors>([&](auto v) { sum[i * vectors + v] += x * of_b[v]; });
    });
  }
  // The sums of a block begin at zero, so that those of long sequences stay accurate.
  if (accumulate) unrolled<registers>([&](auto r) { sum[r] += load(result(r)); });
  unrolled<registers>([&](auto r) { std::memcpy(result(r), &sum[r], sizeof sum[r]); });
}
#endif

#if defined(MYLOS_MULTIPLIES_PAIRS)
/// Vector registers of sums and of pairs. `add_products` returns sums + the products of both elements of the pairs;
/// compilers do not generate this instruction from a loop.
#if defined(__x86_64__)
using Sums = __m512;
using Pairs = __m512i;
inline Sums load_sums(const float* from) { return _mm512_loadu_ps(from); }
inline Pairs load_pairs(const Pair* from) { return _mm512_loadu_si512(from); }
inline Pairs broadcast(Pair pair) { return _mm512_set1_epi32(static_cast<int>(pair)); }
inline Sums add_products(Sums to, Pairs x, Pairs y) { return _mm512_dpbf16_ps(to, (__m512bh)x, (__m512bh)y); }
inline void store_sums(float* to, Sums sums) { _mm512_storeu_ps(to, sums); }
#else
using Sums = float32x4_t;
using Pairs = uint32x4_t;
inline Sums load_sums(const float* from) { return vld1q_f32(from); }
inline Pairs load_pairs(const Pair* from) { return vld1q_u32(from); }
inline Pairs broadcast(Pair pair) { return vdupq_n_u32(pair); }
inline Sums add_products(Sums to, Pairs x, Pairs y) { return vbfdotq_f32(to, (bfloat16x8_t)x, (bfloat16x8_t)y); }
inline void store_sums(float* to, Sums sums) { vst1q_f32(to, sums); }
#endif
static_assert(sizeof(Sums) == vector * sizeof(float));

/// The same for pairs.
template <int columns>
inline void tile_product(int inner, Left<Pair> a, Block<const Pair> b, bool accumulate, Block<float> c) {
  constexpr int vectors = columns / vector;
  Sums sum[tile_rows][vectors];
  for (int i = 0; i < tile_rows; ++i) {
    for (int v = 0; v < vectors; ++v) {
      sum[i][v] = accumulate ? load_sums(c.data + i * c.stride + v * vector) : Sums{};
    }
  }
  for (int k = 0; k < inner; ++k) {
    const Pair* left = a.data + k * a.inner_stride;
    const Pair* right = b.data + k * b.stride;
    Pairs of_b[vectors];
    for (int v = 0; v < vectors; ++v) of_b[v] = load_pairs(right + v * vector);
    for (int i = 0; i < tile_rows; ++i) {
      const Pairs x = broadcast(left[i * a.row_stride]);
      for (int v = 0; v < vectors; ++v) sum[i][v] = add_products(sum[i][v], x, of_b[v]);
    }
  }
  for (int i = 0; i < tile_rows; ++i) {
    for (int v = 0; v < vectors; ++v) store_sums(c.data + i * c.stride + v * vector, sum[i][v]);
  }
}
#endif

#if !defined(MYLOS_DEVICE_BUILD)
/// to (square, square) = transpose of from, whose rows have `stride` pairs.
inline void transpose_square(const Pair* from, int stride, Pair* to) {
  Pair a[square * square];
  for (int i = 0; i < square; ++i) std::memcpy(a + i * square, from + i * stride, square * sizeof(Pair));
  shuffle(a, to);
  shuffle(to, a);
  shuffle(a, to);
  shuffle(to, a);
  std::memcpy(to, a, sizeof a);
}

/// Rows per block of `product_in_tiles`.
inline constexpr int tile_block_rows = 2 * tile_register_side;
static_assert(tile_register_side == square && (panel == 2 * square || panel == square));

/// Tiles of an operand: where they begin, and the pairs from one row of a tile to the next.
struct OperandTiles {
  const Pair* data[2];
  int stride;
};

/// One or two by two blocks of `product_in_tiles`.
template <int row_tiles, class Tiles>
inline void multiply_tiles(const Tiles& tiles, int inner, const OperandTiles& left, const OperandTiles& right,
                           bool accumulate, const Block<float>& c) {
  constexpr int side = tile_register_side;
  const std::size_t row_bytes = c.stride * sizeof(float);
  const std::size_t left_bytes = left.stride * sizeof(Pair), right_bytes = right.stride * sizeof(Pair);
  const auto for_sums = [](const auto& f) {
    f.template operator()<0, 0, 0>();
    f.template operator()<1, 0, 1>();
    if constexpr (row_tiles > 1) f.template operator()<2, 1, 0>();
    if constexpr (row_tiles > 1) f.template operator()<3, 1, 1>();
  };
  for_sums([&]<int sum, int row, int column>() {
    if (accumulate) return tiles.template load<sum>(c.data + row * side * c.stride + column * side, row_bytes);
    tiles.template clear<sum>();
  });
  for (int k = 0; k < inner; k += side) {
    tiles.template load<4>(left.data[0] + k, left_bytes);
    if constexpr (row_tiles > 1) tiles.template load<5>(left.data[1] + k, left_bytes);
    tiles.template load<6>(right.data[0] + k * right.stride, right_bytes);
    tiles.template load<7>(right.data[1] + k * right.stride, right_bytes);
    for_sums([&]<int sum, int row, int column>() { tiles.template multiply<sum, 4 + row, 6 + column>(); });
  }
  for_sums([&]<int sum, int row, int column>() {
    tiles.template store<sum>(c.data + row * side * c.stride + column * side, row_bytes);
  });
}

/// Computes the rows [row, row + `tile_block_rows`) of `product` in tile registers, or those that exist. Reads and
/// writes whole blocks of 16 rows and 32 columns, and reads 16 pairs at a time. Pairs beyond `inner` must be finite in
/// both operands and zero in one. Left rows beyond `rows` may hold anything: they affect only result rows beyond
/// `rows`. A left operand with inner_stride > 1 must have row_stride 1 and at most `square` inner pairs.
template <class Tiles>
inline void product_in_tiles(const Tiles& tiles, int row, int rows, int columns, int inner, const Left<Pair>& a,
                             const Right<Pair>& b, bool accumulate, const Block<float>& c) {
  constexpr int side = tile_register_side;
  const bool two_rows = rows - row > side;
  OperandTiles left{{a.data + row * a.row_stride, a.data + (row + side) * a.row_stride}, a.row_stride};
  Pair transposed[2][square * square];
  if (a.inner_stride > 1) {
    for (int i = 0; i < 1 + two_rows; ++i) {
      transpose_square(left.data[i], a.inner_stride, transposed[i]);
      left.data[i] = transposed[i];
    }
    left.stride = square;
  }
  const auto right_tile = [&](int column) { return b.data + column / panel * b.panel_stride + column % panel; };
  for (int column = 0; column < columns; column += 2 * side) {
    const OperandTiles right{{right_tile(column), right_tile(column + side)}, b.stride};
    const Block<float> result{c.data + row * c.stride + column, c.stride};
    if (two_rows) {
      multiply_tiles<2>(tiles, inner, left, right, accumulate, result);
    } else {
      multiply_tiles<1>(tiles, inner, left, right, accumulate, result);
    }
  }
}
#endif

/// c (rows, columns) = or += a (rows, inner) b (inner, columns), all in scratch. Rows are rounded up to `tile_rows` and
/// columns to half of `tile_columns`, so the arrays must extend that far. Sums run in the order of `inner`. With pairs,
/// a PairTileScope must exist; in tile registers, `product_in_tiles` says what is read and written, and the CPU
/// defines the order of the sums of 32 products.
template <class Operand>
KOKKOS_INLINE_FUNCTION void product(const Team& team, int rows, int columns, int inner, const Left<Operand>& a,
                                    const Right<Operand>& b, bool accumulate, const Block<float>& c) {
#if defined(MYLOS_MULTIPLIES_TILES)
  if constexpr (std::is_same_v<Operand, Pair>) {
    if (bfloat16_operands() == Bfloat16Operands::tiles) {
      const int blocks = (rows + tile_block_rows - 1) / tile_block_rows;
      return Kokkos::parallel_for(Kokkos::TeamThreadRange(team, blocks), [&](int block) {
        const PairTiles tiles;
        product_in_tiles(tiles, block * tile_block_rows, rows, columns, operands_of<Operand>(inner), a, b, accumulate,
                         c);
      });
    }
  }
#endif
  const int row_tiles = (rows + tile_rows - 1) / tile_rows, column_tiles = (columns + tile_columns - 1) / tile_columns;
  const int operands = operands_of<Operand>(inner);
  // Row tiles vary fastest, so that the columns of b that a tile needs stay in the L1 cache.
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, row_tiles * column_tiles), [&](int tile) {
    const int row = tile % row_tiles * tile_rows, column = tile / row_tiles * tile_columns;
    const Left<Operand> left{a.data + row * a.row_stride, a.row_stride, a.inner_stride};
    const Block<const Operand> right{b.data + column / panel * b.panel_stride + column % panel, b.stride};
    const Block<float> result{c.data + row * c.stride + column, c.stride};
    if (columns - column > tile_columns / 2) {
      return tile_product<tile_columns>(operands, left, right, accumulate, result);
    }
    tile_product<tile_columns / 2>(operands, left, right, accumulate, result);
  });
}

}  // namespace mylos::attention
