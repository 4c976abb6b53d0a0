#pragma once

#include "core/kernels/attention/attention_blocks.hpp"
#include "core/kernels/attention/attention_lanes.hpp"
#include "core/kernels/attention/attention_tiles.hpp"
#include "core/kernels/dropout_lanes.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

/// Common parts of both passes of attention in lanes. A team of one thread takes a head of a sequence, or a part of it
/// if the sequence is long (attention_tiles.hpp). It loops over blocks of queries, and for each over blocks of keys.
namespace mylos::attention {

/// Floats from one key's scores to the next key's. The last block of a sequence uses half of the lanes if they suffice.
inline constexpr int score_stride = query_block;
static_assert(square == 16 && score_stride == 2 * square && square % vector == 0);

/// Keys whose dropout is drawn at a time.
inline constexpr int drawn_keys = static_cast<int>(dropout_group);

/// Calls body(j) for each lane.
template <int width, class Body>
KOKKOS_FORCEINLINE_FUNCTION void for_lanes(const Body& body) {
  MYLOS_ROLLED
  MYLOS_INDEPENDENT
  for (int j = 0; j < width; ++j) body(j);
}

/// c (rows, columns) = or += a (rows, inner) b (inner, columns) for one row of register tiles, of at most `height`
/// rows.
template <int height = most_tile_rows>
void multiply_rows(int rows, int columns, int inner, const Left<float>& a, const Block<const float>& b, bool accumulate,
                   const Block<float>& c) {
  if constexpr (height > 1) {
    if (rows < height) return multiply_rows<height - 1>(rows, columns, inner, a, b, accumulate, c);
  }
  int column = 0;
  for (; column + tile_columns <= columns; column += tile_columns) {
    tile_product<tile_columns, height>(inner, a, {b.data + column, b.stride}, accumulate, {c.data + column, c.stride});
  }
  if constexpr (tile_columns > square) {
    if (column == columns) return;
    tile_product<square, height>(inner, a, {b.data + column, b.stride}, accumulate, {c.data + column, c.stride});
  }
}

/// c (rows, columns) = or += a (rows, inner) b (inner, columns). Nothing beyond these is read or written. `columns`
/// must be a multiple of `square`. Rows are divided evenly: a tile of few rows waits for its sums.
inline void multiply(int rows, int columns, int inner, const Left<float>& a, const Block<const float>& b,
                     bool accumulate, const Block<float>& c) {
  const int tiles = (rows + most_tile_rows - 1) / most_tile_rows, height = rows / tiles, higher = rows % tiles;
  for (int tile = 0, row = 0; tile < tiles; ++tile) {
    const int of_tile = tile < higher ? height + 1 : height;
    const Left<float> left{a.data + row * a.row_stride, a.row_stride, a.inner_stride};
    multiply_rows(of_tile, columns, inner, left, b, accumulate, {c.data + row * c.stride, c.stride});
    row += of_tile;
  }
}

/// The rows of a head as operands and results of products, which count the floats of `key_block` rows with an int.
inline Block<const float> block_of(const HeadRows<const float>& rows) {
  return {rows.data, static_cast<int>(rows.stride)};
}
inline Block<float> block_of(const HeadRows<float>& rows) { return {rows.data, static_cast<int>(rows.stride)}; }
inline Left<float> left_of(const HeadRows<const float>& rows) { return {rows.data, static_cast<int>(rows.stride), 1}; }

/// Scores as the left operand of a product whose rows are queries, and of one whose rows are keys.
inline Left<float> by_query(const float* scores) { return {scores, 1, score_stride}; }
inline Left<float> by_key(const float* scores) { return {scores, score_stride, 1}; }

template <class T>
HeadRows<T> rows_after(const HeadRows<T>& rows, int count) {
  return {rows.data + static_cast<std::size_t>(count) * rows.stride, rows.stride, rows.head_size};
}

/// Returns lanes of a, and of b from `vector` on.
template <int... lane>
KOKKOS_FORCEINLINE_FUNCTION Register lanes_of(const Register& a, const Register& b) {
#if __has_builtin(__builtin_shufflevector)
  return __builtin_shufflevector(a, b, lane...);
#else  // GCC 11
  using Lanes = std::int32_t __attribute__((vector_size(sizeof(Register))));
  return __builtin_shuffle(a, b, Lanes{lane...});
#endif
}

/// Transposes `vector` registers, of which two that lie `step` apart exchange the halves of squares of that side.
template <int step = 1>
KOKKOS_FORCEINLINE_FUNCTION void transpose_registers(Register (&x)[vector]) {
  unrolled<vector>([&](auto i) {
    constexpr int row = i;
    if constexpr ((row & step) == 0) {
      const Register a = x[row], b = x[row + step];
      [&]<int... lane>(std::integer_sequence<int, lane...>) {
        x[row] = lanes_of<(lane & step ? vector + lane - step : lane)...>(a, b);
        x[row + step] = lanes_of<(lane & step ? vector + lane : lane + step)...>(a, b);
      }
      (std::make_integer_sequence<int, vector>{});
    }
  });
  if constexpr (2 * step < vector) transpose_registers<2 * step>(x);
}

/// to (head size, score_stride) = transpose of from (rows, head size); lanes beyond `rows` are zero.
template <int width>
void transpose(const HeadRows<const float>& from, int rows, float* to) {
  for (int row = 0; row < width; row += vector) {
    const float* const first = from.data + static_cast<std::size_t>(row) * from.stride;
    for (int d = 0; d < from.head_size; d += vector) {
      Register x[vector];
      unrolled<vector>([&](auto i) { x[i] = row + i < rows ? load(first + i * from.stride + d) : Register{}; });
      transpose_registers(x);
      unrolled<vector>([&](auto i) { std::memcpy(to + (d + i) * score_stride + row, &x[i], sizeof x[i]); });
    }
  }
}

/// Floats from one row of a copied head to the next: an odd number of cache lines, so that rows fill all of the sets.
inline int copied_stride(std::size_t head_size) { return static_cast<int>((head_size / square | 1) * square); }

/// to = from (rows, head size), of any strides. Requests rows ahead, which lie on other pages than the ones before.
inline void copy(const HeadRows<const float>& from, int rows, const HeadRows<float>& to) {
  constexpr std::size_t ahead = 16;
  for (int row = 0; row < rows; ++row) {
    const float* const source = from.data + static_cast<std::size_t>(row) * from.stride;
    float* const target = to.data + static_cast<std::size_t>(row) * to.stride;
    for (int d = 0; d < from.head_size; d += square) {
      __builtin_prefetch(source + ahead * from.stride + d);
      std::memcpy(target + d, source + d, square * sizeof(float));
    }
  }
}

/// Returns a copy of these rows in `to`.
inline HeadRows<const float> copied_rows(const HeadRows<const float>& from, int rows, float* to) {
  const std::size_t stride = copied_stride(from.head_size);
  copy(from, rows, {to, stride, from.head_size});
  return {to, stride, from.head_size};
}

/// Returns the blocks that `queries` queries are.
inline int query_blocks(int queries) { return (queries + query_block - 1) / query_block; }

/// Dropout's draws for `drawn_keys` keys and the queries of a block.
template <int width>
struct DrawnKeys {
  std::uint32_t words[drawn_keys / 2][width];
  int threshold;  ///< signed, as are comparisons with AVX2

  /// Draws for the keys from `first_key`, a multiple of `drawn_keys`.
  void draw(const DropoutKey& key, const DropoutPosition& position, int first_key) {
    DrawLanes<width> x;
    for (int j = 0; j < width; ++j) {
      x.set(j, key, position.sample, static_cast<std::uint32_t>(position.first_query + j), position.head,
            static_cast<std::uint32_t>(first_key / drawn_keys));
    }
    x.draw(key.philox_key());
    for (int w = 0; w < drawn_keys / 2; ++w) {
      for_lanes<width>([&](int j) { words[w][j] = static_cast<std::uint32_t>(x.word[w][j]); });
    }
    threshold = static_cast<int>(key.threshold());
  }

  /// Whether the score of key `i` is kept for lane `j`.
  bool keeps(int i, int j) const {
    const std::uint32_t draw = i % 2 == 0 ? words[i / 2][j] & 0xffffu : words[i / 2][j] >> 16;
    return static_cast<int>(draw) >= threshold;
  }
};

/// Calls body(k, kept, i) for the keys k of a block, whose dropout is the i-th of `kept`.
template <bool drops, int width, class Body>
KOKKOS_FORCEINLINE_FUNCTION void for_keys(int keys, const DropoutKey& dropout, const DropoutPosition& block,
                                          const Body& body) {
  DrawnKeys<width> kept;
  for (int k = 0; k < keys; k += drawn_keys) {
    if constexpr (drops) kept.draw(dropout, block, block.first_key + k);
    const int end = at_most(drawn_keys, keys - k);
    for (int i = 0; i < end; ++i) body(k + i, kept, i);
  }
}

/// Masks the keys that a query does not see: those after it, and those before its window.
template <int width>
void hide_keys(const AttentionShape& shape, const DropoutPosition& block, int keys, float* scores) {
  if (!shape.causal) return;
  const int first = block.first_query + 1 - block.first_key, seen_first = shape.window - first + 1;
  for (int k = at_least(first, 0); k < keys; ++k) {
    const int hidden = at_most(k - first + 1, width);
    for (int j = 0; j < hidden; ++j) scores[k * score_stride + j] = hidden_score;
  }
  for (int k = 0; k < keys && k + seen_first < width; ++k) {
    for (int j = at_least(k + seen_first, 0); j < width; ++j) scores[k * score_stride + j] = hidden_score;
  }
}

/// The state of a block of queries after some blocks of keys; the maximum is of unscaled q k^T.
struct RunningLanes {
  float maximum[query_block], sum[query_block];
};

/// Raises the maxima to those of `keys` rows of scores.
template <int width>
void raise_maxima(int keys, const float* scores, float (&maximum)[query_block]) {
  constexpr int at_once = 4;  // a maximum waits for the one before
  float lane[at_once][width];
  for (int i = 0; i < at_once; ++i) for_lanes<width>([&](int j) { lane[i][j] = maximum[j]; });
  const auto larger = [](float a, float b) { return a < b ? b : a; };
  int k = 0;
  for (; k + at_once <= keys; k += at_once) {
    for (int i = 0; i < at_once; ++i) {
      const float* const x = scores + (k + i) * score_stride;
      for_lanes<width>([&](int j) { lane[i][j] = larger(lane[i][j], x[j]); });
    }
  }
  for (; k < keys; ++k) for_lanes<width>([&](int j) { lane[0][j] = larger(lane[0][j], scores[k * score_stride + j]); });
  for_lanes<width>([&](int j) { maximum[j] = larger(larger(lane[0][j], lane[1][j]), larger(lane[2][j], lane[3][j])); });
}

/// A query head of a sequence; `first` is the sequence's first row in the batch.
struct SequenceHead {
  std::size_t sequence, head, first;
  int length;
};

/// Returns a policy with one thread per team. Each team has `scratch` bytes of scratch memory.
inline Policy policy_of(const ExecutionSpace& space, std::size_t league, std::size_t scratch) {
  return Policy(space, static_cast<int>(league), 1).set_scratch_size(0, Kokkos::PerTeam(scratch));
}

}  // namespace mylos::attention
