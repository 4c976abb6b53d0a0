#pragma once

#include "core/kernels/attention.hpp"
#include "core/kernels/cuda/matrix_tiles.hpp"
#include "core/random.hpp"

#include <cstddef>
#include <cstdint>

/// Common parts of attention's passes on tensor cores. A thread block owns some rows of a head of a sequence, 16 or 32
/// per warp, and loops over the rows of the other side. These rows are copied to shared memory in two buffers: one is
/// filled while the other is read. No two warps add to the same sum. Scores never leave registers: adjacent ones,
/// rounded, form the left operand of the next product.
namespace mylos::attention {

using matrix::Octet;

/// Tile sizes of a pass: rows per warp in fragments of 16, rows per buffer, and columns of scores held in registers at
/// once.
template <int head_size, int row_fragments, int buffer_rows, int score_columns>
struct Cut {
  static constexpr int size = head_size, fragments = row_fragments, buffered = buffer_rows, columns = score_columns;
  static constexpr int warp_rows = fragments * matrix::fragment_rows, own_rows = matrix::warps * warp_rows;
  static constexpr int octets = size / matrix::octet_size;
  static constexpr int own_tile = own_rows * octets, buffer_tile = buffered * octets;  ///< in octets
  /// Number of buffers; each holds two tiles.
  static constexpr int buffers = 2;
};

/// 32 rows per warp halve the loads from shared memory per product. For heads of 128, two sets of sums leave no
/// registers for them.
template <int size>
using ForwardCut = Cut<size, size == 128 ? 1 : 2, 64, 32>;
template <int size>
using QueryCut = Cut<size, size == 128 ? 1 : 2, size == 128 ? 32 : 64, 32>;
template <int size>
using KeyCut = Cut<size, size == 128 ? 1 : 2, size == 128 ? 32 : 64, 32>;

/// The arguments common to all passes; arrays as in core/kernels/attention.hpp.
template <class T>
struct PackedHeads {
  int heads, key_value_heads;
  bool causal;
  float scale;
  DropoutKey dropout;
  const std::size_t* starts;
  const std::uint32_t* sample_ids;
  std::size_t rows;  ///< T
  const T* qkv;
  std::size_t longest;  ///< rows of the longest sequence

  MYLOS_BLOCK_FUNCTION std::size_t columns(int size) const {
    return static_cast<std::size_t>((heads + 2 * key_value_heads) * size);
  }
};

template <class T>
struct ForwardArguments : PackedHeads<T> {
  T* out;
  float* log_sum_exp;  ///< (A, T)
};

template <class T>
struct BackwardArguments : PackedHeads<T> {
  const T *out, *dout;
  const float* log_sum_exp;  ///< (A, T)
  T* dqkv;
  float* row_sums;  ///< (A, T)
};

/// Returns the number of blocks in a pass over heads of `samples` sequences; those beyond the end of their sequence
/// return at once.
constexpr std::size_t block_count(std::size_t samples, std::size_t heads, std::size_t longest, std::size_t own_rows) {
  return samples * heads * ((longest + own_rows - 1) / own_rows);
}

/// The position of a block: the rows of a sequence from `own` on.
struct BlockPosition {
  std::uint32_t sample;
  int head, own, length;
  std::size_t first;  ///< first row of the sequence in the batch

  template <class T, class Block>
  static MYLOS_BLOCK_FUNCTION BlockPosition of(const Block& block, const PackedHeads<T>& all, int heads, int own_rows) {
    const int tiles = static_cast<int>((all.longest + own_rows - 1) / own_rows);
    const int tile = block.index() % tiles, rest = block.index() / tiles, sequence = rest / heads;
    const std::size_t first = all.starts[sequence];
    return {.sample = all.sample_ids[sequence],
            .head = rest % heads,
            .own = tile * own_rows,
            .length = static_cast<int>(all.starts[sequence + 1] - first),
            .first = first};
  }
};

inline constexpr float log2_of_e = 1.44269504f;

/// The score of a masked key, and the initial maximum: finite, and less than any other score.
inline constexpr float hidden_score = -3.0e38f;

/// The scores of a thread that dropout keeps: one bit each, in the order of Sums::for_each.
template <int fragments, int columns>
struct KeptScores {
  static constexpr int tiles = columns / matrix::fragment_columns;
  static constexpr int count = fragments * tiles * 4, words = (count + 31) / 32;
  std::uint32_t bits[words];

  MYLOS_BLOCK_FUNCTION bool operator()(int fragment, int tile, int i) const {
    const int bit = (fragment * tiles + tile) * 4 + i;
    return (bits[bit / 32] >> (bit % 32) & 1u) != 0;
  }
  /// Sets all scores to kept or dropped.
  MYLOS_BLOCK_FUNCTION void fill(bool kept) {
    MYLOS_UNROLLED
    for (int w = 0; w < words; ++w) bits[w] = kept ? 0xffffffffu : 0u;
  }
  MYLOS_BLOCK_FUNCTION void add(int fragment, int tile, std::uint32_t four) {
    const int bit = (fragment * tiles + tile) * 4;
    bits[bit / 32] |= four << (bit % 32);
  }
};

/// Dropout draws of one head of a sample.
struct HeadDraws {
  DropoutKey key;
  std::uint32_t threshold, sample, head;

  /// Returns one bit for each of the eight keys of a group: set if the key is kept.
  MYLOS_BLOCK_FUNCTION std::uint32_t kept(int query, int group) const {
    const RandomWords draws =
        dropout_draw(key, sample, static_cast<std::uint32_t>(query), head, static_cast<std::uint32_t>(group)).words;
    std::uint32_t bits = 0;
    MYLOS_UNROLLED
    for (unsigned w = 0; w < 4; ++w) {
      if ((draws.word[w] & 0xffffu) >= threshold) bits |= 1u << (2 * w);
      if (draws.word[w] >> 16 >= threshold) bits |= 2u << (2 * w);
    }
    return bits;
  }

  /// Draws for scores whose rows are queries from `query` on and whose columns are keys from `first_key` on. The eight
  /// keys of a tile are one group, and four threads hold a query's scores: each thread draws for every fourth tile and
  /// gets the other draws by shuffles.
  template <int fragments, int columns, class Block>
  MYLOS_BLOCK_FUNCTION void of_queries(const Block& block, int query, int first_key,
                                       KeptScores<fragments, columns>& kept_scores) const {
    using Mma = typename Block::Mma;
    constexpr int tiles = columns / matrix::fragment_columns, quads = tiles / 4;
    static_assert(tiles % 4 == 0 && quads <= 2);
    const int g = Mma::group(block.lane()), t = Mma::in_group(block.lane());
    kept_scores.fill(false);
    MYLOS_UNROLLED
    for (int f = 0; f < fragments; ++f) {
      const int row = query + f * matrix::fragment_rows + Mma::row(g);
      std::uint32_t own = 0;
      MYLOS_UNROLLED
      for (int q = 0; q < quads; ++q) {
        const int group = first_key / static_cast<int>(dropout_group) + 4 * q + t;
        own |= (kept(row, group) | kept(row + Mma::half_rows, group) << 8) << (16 * q);
      }
      MYLOS_UNROLLED
      for (int s = 0; s < 4; ++s) {
        const std::uint32_t theirs = block.shuffle(own, Mma::lane(g, s)) >> (2 * t);
        MYLOS_UNROLLED
        for (int q = 0; q < quads; ++q) {
          const std::uint32_t of_tile = theirs >> (16 * q);
          kept_scores.add(f, 4 * q + s, (of_tile & 3u) | (of_tile >> 6 & 12u));
        }
      }
    }
  }

  /// Draws for scores whose rows are keys from `first_key` on and whose columns are queries from `first_query` on. A
  /// group is a column of half a fragment, and eight threads hold the two groups of a column: each thread draws for one
  /// of eight tiles and gets the other draws by shuffles.
  template <int fragments, int columns, class Block>
  MYLOS_BLOCK_FUNCTION void of_keys(const Block& block, int first_key, int first_query,
                                    KeptScores<fragments, columns>& kept_scores) const {
    using Mma = typename Block::Mma;
    constexpr int tiles = columns / matrix::fragment_columns, all = fragments * tiles;
    static_assert(all == 8 || all == 4);
    constexpr bool splits = all == 4;  // two threads per tile: one draws for the first query, the other for the second
    const int g = Mma::group(block.lane()), t = Mma::in_group(block.lane());
    const int mine = g % all, query = first_query + mine % tiles * matrix::fragment_columns + 2 * t;
    const int group = (first_key + mine / tiles * matrix::fragment_rows) / static_cast<int>(dropout_group);
    const int first = splits ? query + g / all : query;
    std::uint32_t own = kept(first, group) | kept(first, group + 1) << 16;
    if (!splits) own |= kept(query + 1, group) << 8 | kept(query + 1, group + 1) << 24;
    kept_scores.fill(false);
    MYLOS_UNROLLED
    for (int f = 0; f < fragments; ++f) {
      MYLOS_UNROLLED
      for (int j = 0; j < tiles; ++j) {
        const int from = f * tiles + j;
        std::uint32_t theirs = block.shuffle(own, Mma::lane(from, t));
        if (splits) theirs |= block.shuffle(own, Mma::lane(from + all, t)) << 8;
        kept_scores.add(f, j, Mma::own_bits(theirs, g));
      }
    }
  }
};

template <class T>
MYLOS_BLOCK_FUNCTION HeadDraws head_draws(const PackedHeads<T>& all, const BlockPosition& position, int head) {
  return {all.dropout, all.dropout.threshold(), position.sample, static_cast<std::uint32_t>(head)};
}

/// Double buffer in shared memory, from octet `first` on, for the rows that a pass loops over: two tiles per buffer,
/// one for each of two matrices, (buffers, 2 matrices, buffered, size).
template <class C, int first>
struct Buffers {
  static constexpr int end = first + C::buffers * 2 * C::buffer_tile;

  static MYLOS_BLOCK_FUNCTION int tile(int turn, int which) {
    return first + ((turn % C::buffers) * 2 + which) * C::buffer_tile;
  }
};

/// The key/value range visible to a query block.
template <class T, class C, class Buffer>
struct PassingKeys {
  const T *keys, *values;  ///< at the sequence's first row
  std::size_t stride;
  int length, visible, seen;  ///< rows of the sequence, visible to the block, visible to this warp

  template <class Block>
  MYLOS_BLOCK_FUNCTION PassingKeys(const Block& block, const PackedHeads<T>& all, const BlockPosition& position) {
    const int head = all.heads + position.head / (all.heads / all.key_value_heads);
    const int end = position.own + C::own_rows, end_of_warp = position.own + (block.warp() + 1) * C::warp_rows;
    stride = all.columns(C::size);
    keys = all.qkv + position.first * stride + head * C::size;
    values = keys + all.key_value_heads * C::size;
    length = position.length;
    visible = all.causal && end < length ? end : length;
    seen = all.causal && end_of_warp < visible ? end_of_warp : visible;
  }

  MYLOS_BLOCK_FUNCTION bool pass_in(int turn) const { return turn * C::buffered < visible; }

  /// Starts copying the keys and values of `turn`.
  template <class Block>
  MYLOS_BLOCK_FUNCTION void copy(const Block& block, int turn) const {
    const int key = turn * C::buffered;
    const std::size_t rows = static_cast<std::size_t>(key) * stride;
    matrix::copy_tile<C::size, C::buffered>(block, keys + rows, stride, length - key, Buffer::tile(turn, 0));
    matrix::copy_tile<C::size, C::buffered>(block, values + rows, stride, length - key, Buffer::tile(turn, 1));
  }
};

}  // namespace mylos::attention
