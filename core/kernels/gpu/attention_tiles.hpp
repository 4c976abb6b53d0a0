#pragma once

#include "core/kernels/gpu/attention_arguments.hpp"
#include "core/kernels/gpu/matrix_tiles.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// Common parts of attention's passes on tensor cores. A thread block owns some rows of a head of a sequence, 16 per
/// warp, and loops over the rows of the other side. These rows are copied to shared memory, in two buffers if there is
/// room: one is filled while the other is read. No two warps add to the same sum. Scores never leave registers:
/// adjacent ones, rounded, form the left operand of the next product.
namespace mylos::attention {

/// Tile sizes of a pass: rows per warp in fragments of 16, rows per buffer, and columns of scores held in registers at
/// once.
template <class Block, int head_size, int row_fragments, int buffer_rows, int score_columns>
struct Cut {
  static constexpr int size = head_size, fragments = row_fragments, buffered = buffer_rows, columns = score_columns;
  static constexpr int warp_rows = fragments * matrix::fragment_rows, own_rows = matrix::warps * warp_rows;
  static constexpr int octets = size / matrix::octet_size;
  static constexpr int own_tile = own_rows * octets, buffer_tile = buffered * octets;  ///< in octets
  /// Number of buffers; each holds two tiles.
  static constexpr int buffers = Block::buffers;
};

/// With 32 rows per warp, loads from shared memory would serve twice as many products, but a multiprocessor would hold
/// fewer warps to hide latencies: on an H200 that is slower with sequences of some hundred rows, and 4 % faster with
/// causal ones of 2,048. A block copies at least one octet per thread to a tile.
template <class Block, int size>
using PassCut = Cut<Block, size, 1, std::max(32, matrix::octet_size* Block::Mma::threads / size), 32>;

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

/// The scores of a thread that dropout keeps, if their rows are queries. A word has the keys of a row; its lowest bit
/// is that of the thread's first column.
template <class Mma, int fragments, int columns>
struct KeptQueries {
  static_assert(columns == keys_of_word);
  std::uint32_t words[fragments][Mma::halves];

  /// Loads the bits of queries from `query` on and keys from `first_key` on, a multiple of 32; all are set without
  /// dropout.
  template <class T, class Block>
  MYLOS_BLOCK_FUNCTION void load(const Block& block, const PackedHeads<T>& all, const BlockPosition& position,
                                 int query, int first_key) {
    const bool drops = all.dropout.active();
    const int first = query + Mma::row(Mma::group(block.lane())), t = Mma::in_group(block.lane());
    const std::uint32_t* const bits = drops ? all.kept.at(position.head, first_key / columns, position.first) : nullptr;
    MYLOS_UNROLLED
    for (int f = 0; f < fragments; ++f) {
      MYLOS_UNROLLED
      for (int half = 0; half < Mma::halves; ++half) {
        const int row = Mma::row_of(first, f, half);
        words[f][half] = drops ? bits[row < position.length ? row : query] >> Mma::column(0, 0, t, 0) : ~0u;
      }
    }
  }
  MYLOS_BLOCK_FUNCTION bool operator()(int fragment, int tile, int i) const {
    return (words[fragment][i / Mma::adjacent] >> Mma::column(0, tile, 0, i) & 1u) != 0;
  }
};

/// The same if their rows are keys and their columns queries. A word has the keys of a column; its lowest bit is that
/// of the thread's first row.
template <class Mma, int columns>
struct KeptKeys {
  static constexpr int tiles = columns / Mma::columns;
  static_assert(columns <= Mma::lanes);
  std::uint32_t loaded, words[tiles][Mma::adjacent];

  /// Loads the bits of a head's queries from `query` on and keys from `first_key` on: each thread of the warp the word
  /// of one query. Without dropout there are none, and nothing below may be called.
  template <class T, class Block>
  MYLOS_BLOCK_FUNCTION void load(const Block& block, const PackedHeads<T>& all, const BlockPosition& position, int head,
                                 int first_key, int query) {
    constexpr int keys = keys_of_word;
    const int row = query + block.lane();
    loaded = 0;
    if (all.dropout.active()) {
      loaded = *all.kept.at(head, first_key / keys, position.first + (row < position.length ? row : query)) >>
               first_key % keys;
    }
  }
  /// Gets the words of the thread's columns from the threads that loaded them.
  template <class Block>
  MYLOS_BLOCK_FUNCTION void spread(const Block& block) {
    const int first = Mma::row(Mma::group(block.lane())), t = Mma::in_group(block.lane());
    MYLOS_UNROLLED
    for (int j = 0; j < tiles; ++j) {
      MYLOS_UNROLLED
      for (int i = 0; i < Mma::adjacent; ++i) {
        words[j][i] = block.shuffle(loaded, Mma::column(0, j, t, i)) >> first;
      }
    }
  }
  MYLOS_BLOCK_FUNCTION bool operator()(int fragment, int tile, int i) const {
    return (words[tile][i % Mma::adjacent] >> Mma::row_of(0, fragment, i / Mma::adjacent) & 1u) != 0;
  }
};

/// The buffers in shared memory, from octet `first` on, for the rows that a pass loops over: two tiles per buffer,
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
  int length, visible;   ///< rows of the sequence, and end of those visible to the block
  int first_seen, seen;  ///< begin and end of those visible to this warp
  int first_turn;        ///< the first with keys visible to the block

  template <class Block>
  MYLOS_BLOCK_FUNCTION PassingKeys(const Block& block, const PackedHeads<T>& all, const BlockPosition& position) {
    const int head = all.heads + position.head / (all.heads / all.key_value_heads);
    const int end = position.own + C::own_rows, end_of_warp = position.own + (block.warp() + 1) * C::warp_rows;
    first_turn = all.mask.first_key(position.own) / C::buffered;
    first_seen = all.mask.first_key(end_of_warp - C::warp_rows);
    stride = all.columns(C::size);
    keys = all.qkv + position.first * stride + head * C::size;
    values = keys + all.key_value_heads * C::size;
    length = position.length;
    visible = all.mask.causal && end < length ? end : length;
    seen = all.mask.causal && end_of_warp < visible ? end_of_warp : visible;
  }

  MYLOS_BLOCK_FUNCTION bool pass_in(int turn) const { return turn * C::buffered < visible; }
  /// Whether this warp sees any of a fragment's keys from `key` on.
  MYLOS_BLOCK_FUNCTION bool are_seen(int key) const { return key < seen && key + C::columns > first_seen; }

  /// Starts copying the keys and values of `turn`.
  template <class Block>
  MYLOS_BLOCK_FUNCTION void copy(const Block& block, int turn) const {
    const int key = turn * C::buffered;
    const std::size_t rows = static_cast<std::size_t>(key) * stride;
    matrix::copy_tile<C::size, C::buffered>(block, keys + rows, stride, length - key, Buffer::tile(turn, 0));
    matrix::copy_tile<C::size, C::buffered>(block, values + rows, stride, length - key, Buffer::tile(turn, 1));
  }

  /// Waits until the keys and values of `turn` are in shared memory. `copy` must have started those of the first turn.
  /// With two buffers, this starts copying those of the next turn; with one, it copies those of `turn` itself.
  template <class Block>
  MYLOS_BLOCK_FUNCTION void advance(const Block& block, int turn) const {
    if (C::buffers == 1 && turn > first_turn) {
      block.sync();  // those before have been read
      copy(block, turn);
    }
    block.wait_for_copies();
    block.sync();
    if (C::buffers > 1 && pass_in(turn + 1)) copy(block, turn + 1);
  }
};

}  // namespace mylos::attention
