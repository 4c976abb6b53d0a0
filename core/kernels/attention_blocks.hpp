#pragma once

#include "core/kernels/attention.hpp"
#include "core/kernels/dropout_lanes.hpp"

#include <cstdint>

/// What attention's forward and backward passes share: blocks of a head in team scratch, always float, and products of
/// them. A product is cut into register tiles that the threads of a team share; the loops inside a tile have constant
/// trip counts and contiguous loads, so that host compilers keep its sums in vector registers.
namespace mylos::attention {

/// A team takes one head of one sequence. Heads are alike and sequences are not, hence the dynamic schedule.
using Policy = Kokkos::TeamPolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
using Team = Policy::member_type;

/// Elements of a vector register, and columns and rows of a register tile, for 32 and for 16 registers. Results do not
/// depend on them. Clang 14 does not keep 8 rows in registers: it runs 15 times slower.
#if defined(__AVX512F__)
inline constexpr int vector = 16, tile_columns = 32;
#elif defined(__AVX__)
inline constexpr int vector = 8, tile_columns = 16;
#else
inline constexpr int vector = 4, tile_columns = 8;
#endif
#if defined(__AVX512F__) && !defined(__clang__)
inline constexpr int tile_rows = 8;
#else
inline constexpr int tile_rows = 4;
#endif
/// What rows of keys are padded to, and partial sums of a row.
inline constexpr int lanes = 32;
/// Query rows and keys of a block of scores.
inline constexpr int query_block = 32;
inline constexpr int key_block = 256;
static_assert(query_block % tile_rows == 0 && key_block % query_block == 0 && key_block % lanes == 0);

KOKKOS_INLINE_FUNCTION constexpr int round_up(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// What blocks are sized by.
struct BlockSizes {
  int padded_keys, depth, block_keys;  ///< of the longest sequence; multiples of `lanes`

  BlockSizes(int longest, int head_size)
      : padded_keys(round_up(longest, lanes)),
        depth(round_up(head_size, lanes)),
        block_keys(padded_keys < key_block ? padded_keys : key_block) {}
};

/// Scratch arrays start at whole cache lines.
inline constexpr std::size_t scratch_alignment = 64;

/// Bytes of scratch that `floats` floats in `arrays` arrays may take.
inline std::size_t scratch_bytes(std::size_t floats, std::size_t arrays) {
  return floats * sizeof(float) + arrays * scratch_alignment;
}

/// The next array of scratch level `level` (0: fast memory of the team, 1: large).
KOKKOS_INLINE_FUNCTION float* take(const Team& team, int level, int floats) {
  return static_cast<float*>(team.team_scratch(level).get_shmem_aligned(
      floats * sizeof(float), static_cast<std::ptrdiff_t>(scratch_alignment)));
}

/// One head's columns of some rows of a packed matrix.
template <class T>
struct HeadRows {
  T* data;  ///< the first row's first column
  std::size_t stride;
  int head_size;
};

template <class T>
KOKKOS_INLINE_FUNCTION HeadRows<T> head_rows(const Matrix<T>& matrix, std::size_t row, std::size_t head,
                                             std::size_t head_size) {
  return {matrix.data() + row * matrix.stride(0) + head * head_size, matrix.stride(0), static_cast<int>(head_size)};
}

/// to (padded_rows, depth) = scale * from (rows, head size), zero beyond.
template <class T>
KOKKOS_INLINE_FUNCTION void load(const Team& team, const HeadRows<const T>& from, int rows, int padded_rows, int depth,
                                 float scale, float* to) {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, padded_rows), [&](int row) {
    const int filled = row < rows ? from.head_size : 0;
    const T* KOKKOS_RESTRICT source = from.data + static_cast<std::size_t>(row < rows ? row : 0) * from.stride;
    float* KOKKOS_RESTRICT target = to + row * depth;
    int d = 0;
    for (; d + lanes <= filled; d += lanes) {
      for (int j = 0; j < lanes; ++j) target[d + j] = scale * static_cast<float>(source[d + j]);
    }
    for (; d < filled; ++d) target[d] = scale * static_cast<float>(source[d]);
    for (; d < depth; ++d) target[d] = 0.0f;
  });
}

/// Side of the squares in which `load_transposed` works.
inline constexpr int square = 16;

/// Interleaves the halves of a square: the position's bits (row, column) rotate left by one.
KOKKOS_INLINE_FUNCTION void shuffle(const float* KOKKOS_RESTRICT from, float* KOKKOS_RESTRICT to) {
  constexpr int half = square * square / 2;
  for (int i = 0; i < half; ++i) {
    to[2 * i] = from[i];
    to[2 * i + 1] = from[half + i];
  }
}

/// One square of `load_transposed`; zero beyond `rows` and `columns`. Four shuffles transpose 16 x 16 elements and
/// vectorise; plain loops cannot be contiguous on both sides and took an eighth of the backward pass.
template <class T>
KOKKOS_INLINE_FUNCTION void load_square(const T* KOKKOS_RESTRICT from, std::size_t from_stride, int rows, int columns,
                                        float* KOKKOS_RESTRICT to, int to_stride) {
  float a[square * square], b[square * square];
  if (rows >= square && columns >= square) {
    for (int i = 0; i < square; ++i) {
      MYLOS_ROLLED
      for (int j = 0; j < square; ++j) a[i * square + j] = static_cast<float>(from[i * from_stride + j]);
    }
  } else {
    for (int i = 0; i < square * square; ++i) {
      const int row = i / square, column = i % square;
      a[i] = row < rows && column < columns ? static_cast<float>(from[row * from_stride + column]) : 0.0f;
    }
  }
  shuffle(a, b);
  shuffle(b, a);
  shuffle(a, b);
  shuffle(b, a);
  for (int j = 0; j < (columns < square ? columns : square); ++j) {
    MYLOS_ROLLED
    for (int i = 0; i < square; ++i) to[j * to_stride + i] = a[j * square + i];
  }
}

/// to (head size, padded_rows) = the transpose of from (rows, head size), zero beyond. `padded_rows` is a multiple of
/// `square`.
template <class T>
KOKKOS_INLINE_FUNCTION void load_transposed(const Team& team, const HeadRows<const T>& from, int rows, int padded_rows,
                                            float* to) {
  const int across = (from.head_size + square - 1) / square;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, padded_rows / square * across), [&](int index) {
    const int row = index / across * square, column = index % across * square;
    load_square(from.data + static_cast<std::size_t>(row < rows ? row : 0) * from.stride + column, from.stride,
                rows - row, from.head_size - column, to + column * padded_rows + row, padded_rows);
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

/// The left operand of a product: element (i, k) is at i * row_stride + k * inner_stride.
struct Left {
  const float* data;
  int row_stride;
  int inner_stride;
};

/// A row-major operand or result.
template <class Float>
struct Block {
  Float* data;
  int stride;
};

/// f(j) for the columns of a tile, a vector at a time.
template <int columns, class Function>
KOKKOS_FORCEINLINE_FUNCTION void for_columns(const Function& f) {
  for (int v = 0; v < columns; v += vector) {
    MYLOS_ROLLED
    for (int j = 0; j < vector; ++j) f(v + j);
  }
}

/// One register tile of `product`, for inner > 0.
template <int columns>
KOKKOS_INLINE_FUNCTION void tile_product(int inner, Left a, Block<const float> b, bool accumulate, Block<float> c) {
  float sum[tile_rows][columns];  // begins with a product: zeros would be a call of memset
  for (int i = 0; i < tile_rows; ++i) {
    for_columns<columns>([&](int j) { sum[i][j] = a.data[i * a.row_stride] * b.data[j]; });
  }
  for (int k = 1; k < inner; ++k) {
    const float* left = a.data + k * a.inner_stride;
    const float* right = b.data + k * b.stride;
    for (int i = 0; i < tile_rows; ++i) {
      const float x = left[i * a.row_stride];
      for_columns<columns>([&](int j) { sum[i][j] += x * right[j]; });
    }
  }
  for (int i = 0; i < tile_rows; ++i) {
    float* KOKKOS_RESTRICT result = c.data + i * c.stride;
    for_columns<columns>([&](int j) { result[j] = (accumulate ? result[j] : 0.0f) + sum[i][j]; });
  }
}

/// c (rows, columns) = or += a (rows, inner) b (inner, columns), all in scratch. Rows are rounded up to `tile_rows`,
/// columns to half of `tile_columns`: the arrays reach that far. The order of summation is that of `inner`.
KOKKOS_INLINE_FUNCTION void product(const Team& team, int rows, int columns, int inner, const Left& a,
                                    const Block<const float>& b, bool accumulate, const Block<float>& c) {
  const int row_tiles = (rows + tile_rows - 1) / tile_rows, column_tiles = (columns + tile_columns - 1) / tile_columns;
  // Row tiles run fastest: the columns of b that a tile needs stay in the first-level cache.
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, row_tiles * column_tiles), [&](int tile) {
    const int row = tile % row_tiles * tile_rows, column = tile / row_tiles * tile_columns;
    const Left left{a.data + row * a.row_stride, a.row_stride, a.inner_stride};
    const Block<const float> right{b.data + column, b.stride};
    const Block<float> result{c.data + row * c.stride + column, c.stride};
    if (columns - column > tile_columns / 2) return tile_product<tile_columns>(inner, left, right, accumulate, result);
    tile_product<tile_columns / 2>(inner, left, right, accumulate, result);
  });
}

/// Which probabilities of a block of scores dropout keeps. The draws are those of `dropout_draw`, made for `lanes`
/// groups of keys at once because one at a time would cost more than the products.
struct DropoutBlock {
  const std::uint32_t* words;  ///< (rows, words_per_row): two draws each, the lower half first
  int words_per_row;
  std::uint32_t threshold;

  /// The draws of a row, 16 bits each in the order of keys, for `stored_draw`.
  KOKKOS_INLINE_FUNCTION const std::uint32_t* row(int row) const { return words + row * words_per_row; }
};

/// Words of scratch that a DropoutBlock takes for a block of scores with `keys` keys: whole chunks of draws, and what a
/// loop over `lanes` keys reads beyond the last row.
KOKKOS_INLINE_FUNCTION constexpr int dropout_words(int keys) {
  return round_up(query_block * (round_up(keys, dropout_group) / 2), 4 * lanes) + lanes;
}

/// Where a block of scores stands, for its draws.
struct DropoutPlace {
  std::uint32_t sample, head;
  int first_query, first_key;
};

/// Fills `lanes` times four words for the groups of keys from `first` on, counted along the rows of the block: what
/// `dropout_draw` gives for each.
KOKKOS_INLINE_FUNCTION void draw_lanes(const DropoutKey& key, const DropoutPlace& place, int groups_per_row, int first,
                                       std::uint32_t* KOKKOS_RESTRICT words) {
  DrawLanes<lanes> x;
  const float per_group = 1.0f / static_cast<float>(groups_per_row);
  const int first_group = place.first_key / static_cast<int>(dropout_group) + first;
  for (int i = 0; i < lanes; ++i) {
    // Exact: the quotient is at least 0.5 / groups_per_row away from an integer.
    const int row = static_cast<int>((static_cast<float>(first + i) + 0.5f) * per_group);
    x.set(i, key, place.sample, static_cast<std::uint32_t>(place.first_query + row), place.head,
          static_cast<std::uint32_t>(first_group + i - row * groups_per_row));
  }
  x.draw(key.philox_key());
  x.store(words);
}

/// Draws for a block of scores (rows, keys) into `words`.
KOKKOS_INLINE_FUNCTION DropoutBlock draw_block(const Team& team, const DropoutKey& key, const DropoutPlace& place,
                                               int rows, int keys, float* scratch) {
  auto* words = reinterpret_cast<std::uint32_t*>(scratch);
  const int groups_per_row = round_up(keys, dropout_group) / static_cast<int>(dropout_group);
  const int chunks = (rows * groups_per_row + lanes - 1) / lanes;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, chunks), [&](int chunk) {
    draw_lanes(key, place, groups_per_row, chunk * lanes, words + chunk * 4 * lanes);
  });
  return {words, 4 * groups_per_row, key.threshold()};
}

/// Combines partial results in a fixed order: halves onto each other. A template, for constant trip counts.
template <int count = lanes, class Combine>
KOKKOS_INLINE_FUNCTION float fold(float (&lane)[lanes], const Combine& combine) {
  if constexpr (count > 1) {
    MYLOS_ROLLED
    for (int j = 0; j < count / 2; ++j) lane[j] = combine(lane[j], lane[j + count / 2]);
    return fold<count / 2>(lane, combine);
  }
  return lane[0];
}

/// Scores are kept in units of log 2, so that their exponentials are powers of two.
inline constexpr float log2_e = 1.44269504f, log_2 = 0.693147181f;

/// Hides the keys of a row that are beyond [0, n): their scores become -infinity, their probabilities 0.
KOKKOS_INLINE_FUNCTION void hide_keys(int n, int padded, float* scores) {
  for (int k = n; k < padded; ++k) scores[k] = -Kokkos::Experimental::infinity_v<float>;
}

/// What both passes ask of their arguments. Errors: std::invalid_argument showing both shapes.
void check_shapes(const AttentionShape& shape, const PackedSequences& sequences, std::size_t rows,
                  std::size_t qkv_columns, std::size_t out_columns);

}  // namespace mylos::attention
