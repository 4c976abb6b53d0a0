#pragma once

#include "core/kernels/attention.hpp"

#include <cstdint>

/// What attention's forward and backward passes share: blocks of a head in team scratch, always float, and products of
/// them. A product is cut into register tiles that the threads of a team share; the loops inside a tile have constant
/// trip counts and contiguous loads, so that host compilers keep its sums in vector registers.
namespace mylos::attention {

/// A team takes one head of one sequence. Heads are alike and sequences are not, hence the dynamic schedule.
using Policy = Kokkos::TeamPolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
using Team = Policy::member_type;

/// Rows of a register tile. 2 x 32 and 8 x 32 measured best for 16 and 32 vector registers, 4 x 32 is near both.
inline constexpr int tile_rows = 4;
/// Columns of a register tile, and partial sums of a row. GCC unrolls 16 iterations or fewer before it vectorises,
/// which keeps it from doing so.
inline constexpr int lanes = 32;
/// Query rows and keys of a block of scores.
inline constexpr int query_block = 32;
inline constexpr int key_block = 256;
static_assert(query_block % tile_rows == 0 && key_block % query_block == 0 && key_block % lanes == 0);

KOKKOS_INLINE_FUNCTION constexpr int round_up(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

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
    for (int d = 0; d < filled; ++d) target[d] = scale * static_cast<float>(source[d]);
    for (int d = filled; d < depth; ++d) target[d] = 0.0f;
  });
}

/// to (head size, padded_rows) = the transpose of from (rows, head size), zero beyond. `padded_rows` is a multiple of
/// `lanes`.
template <class T>
KOKKOS_INLINE_FUNCTION void load_transposed(const Team& team, const HeadRows<const T>& from, int rows, int padded_rows,
                                            float* to) {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, padded_rows / lanes), [&](int block) {
    const int first = block * lanes;
    const T* KOKKOS_RESTRICT source = from.data + static_cast<std::size_t>(first) * from.stride;
    const int filled = rows - first < lanes ? rows - first : lanes;
    for (int d = 0; d < from.head_size; ++d) {
      float* KOKKOS_RESTRICT target = to + d * padded_rows + first;
      for (int row = 0; row < filled; ++row) target[row] = static_cast<float>(source[row * from.stride + d]);
      for (int row = filled; row < lanes; ++row) target[row] = 0.0f;
    }
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

/// One register tile of `product`.
KOKKOS_INLINE_FUNCTION void tile_product(int inner, const Left& a, const Block<const float>& b, bool accumulate,
                                         const Block<float>& c) {
  const float* KOKKOS_RESTRICT left = a.data;
  const float* KOKKOS_RESTRICT right = b.data;
  float* KOKKOS_RESTRICT result = c.data;
  float sum[tile_rows][lanes];
  for (int i = 0; i < tile_rows; ++i) {
    for (int j = 0; j < lanes; ++j) sum[i][j] = accumulate ? result[i * c.stride + j] : 0.0f;
  }
  for (int k = 0; k < inner; ++k) {
    for (int i = 0; i < tile_rows; ++i) {
      const float x = left[i * a.row_stride + k * a.inner_stride];
      for (int j = 0; j < lanes; ++j) sum[i][j] += x * right[k * b.stride + j];
    }
  }
  for (int i = 0; i < tile_rows; ++i) {
    for (int j = 0; j < lanes; ++j) result[i * c.stride + j] = sum[i][j];
  }
}

/// c (rows, columns) = or += a (rows, inner) b (inner, columns), all in scratch. Rows are rounded up to `tile_rows`,
/// columns to `lanes`: the arrays reach that far. The order of summation is that of `inner`.
KOKKOS_INLINE_FUNCTION void product(const Team& team, int rows, int columns, int inner, const Left& a,
                                    const Block<const float>& b, bool accumulate, const Block<float>& c) {
  const int row_tiles = (rows + tile_rows - 1) / tile_rows, column_tiles = (columns + lanes - 1) / lanes;
  // Row tiles run fastest: the columns of b that a tile needs stay in the first-level cache.
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, row_tiles * column_tiles), [&](int tile) {
    const int row = tile % row_tiles * tile_rows, column = tile / row_tiles * lanes;
    tile_product(inner, {a.data + row * a.row_stride, a.row_stride, a.inner_stride}, {b.data + column, b.stride},
                 accumulate, {c.data + row * c.stride + column, c.stride});
  });
}

/// Which probabilities of a block of scores dropout keeps. The draws are those of `dropout_draw`, made for `lanes`
/// groups of keys at once because one at a time would cost more than the products.
struct DropoutBlock {
  std::uint32_t* words;  ///< (rows, words_per_row): two draws each
  int words_per_row;
  std::uint32_t threshold;

  /// Sets to zero the dropped ones of x[0, n) in row `row`; n is rounded up to a whole group.
  KOKKOS_INLINE_FUNCTION void apply(int row, int n, float* KOKKOS_RESTRICT x) const {
    const std::uint32_t* KOKKOS_RESTRICT draw = words + row * words_per_row;
    const int pairs = round_up(n, dropout_group) / 2;
    for (int i = 0; i < pairs; ++i) {
      const std::uint32_t word = draw[i];
      x[2 * i] = (word & 0xffffu) >= threshold ? x[2 * i] : 0.0f;
      x[2 * i + 1] = (word >> 16) >= threshold ? x[2 * i + 1] : 0.0f;
    }
  }
};

/// Floats of scratch that a DropoutBlock's words take for a block of scores with `keys` keys.
KOKKOS_INLINE_FUNCTION constexpr int dropout_words(int keys) {
  return round_up(query_block * (round_up(keys, dropout_group) / 2), 4 * lanes);
}

/// Where a block of scores stands, for its draws.
struct DropoutPlace {
  std::uint32_t sample, head;
  int first_query, first_key;
};

/// Fills `lanes` times four words for the groups of keys from `first` on, counted along the rows of the block.
KOKKOS_INLINE_FUNCTION void draw_lanes(const DropoutKey& key, const DropoutPlace& place, int groups_per_row, int first,
                                       std::uint32_t* KOKKOS_RESTRICT words) {
  std::uint32_t position[lanes], group[lanes];
  const float per_group = 1.0f / static_cast<float>(groups_per_row);
  for (int i = 0; i < lanes; ++i) {
    // Exact: the quotient is at least 0.5 / groups_per_row away from the next integer.
    const int row = static_cast<int>((static_cast<float>(first + i) + 0.5f) * per_group);
    position[i] = static_cast<std::uint32_t>(place.first_query + row);
    group[i] = static_cast<std::uint32_t>(place.first_key / static_cast<int>(dropout_group) + first + i -
                                          row * groups_per_row);
  }
  for (int i = 0; i < lanes; ++i) {
    const DropoutDraw draw = dropout_draw(key, place.sample, position[i], place.head, group[i]);
    for (int word = 0; word < 4; ++word) words[4 * i + word] = draw.words.word[word];
  }
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

/// Hides the keys of a row that are beyond [0, n): their scores become -infinity, their probabilities 0.
KOKKOS_INLINE_FUNCTION void hide_keys(int n, int padded, float* scores) {
  for (int k = n; k < padded; ++k) scores[k] = -Kokkos::Experimental::infinity_v<float>;
}

/// What both passes ask of their arguments. Errors: std::invalid_argument showing both shapes.
void check_shapes(const AttentionShape& shape, const PackedSequences& sequences, std::size_t rows,
                  std::size_t qkv_columns, std::size_t out_columns);

}  // namespace mylos::attention
