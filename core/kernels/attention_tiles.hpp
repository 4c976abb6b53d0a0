#pragma once

#include "core/kernels/attention.hpp"
#include "core/kernels/attention_blocks.hpp"

/// How the passes of attention share long sequences out to teams. Sums keep their order however a sequence is cut, so
/// that results do not depend on it.
///
/// Forward, each query has sums of its own: a team takes so many queries and goes over the keys that they see.
/// Backward, queries add up over keys and keys over queries: a sequence is cut into tiles of so many queries by so many
/// keys. Tile (i, j), of the i-th queries (of all heads that share keys, one head after the other) and the j-th keys,
/// goes on with the sums of keys that tile (i-1, j) left, and with those of queries that tile (i, j-1) left. Tiles of
/// equal i + j need nothing of each other: they are a wave, one launch.
namespace mylos::attention {

/// Queries and keys of a tile, where there are several.
inline constexpr int tile_side = 256;
static_assert(tile_side % key_block == 0 && tile_side % query_block == 0 && tile_side <= longest_attention_tile);

KOKKOS_INLINE_FUNCTION constexpr int at_most(int value, int most) { return value < most ? value : most; }

/// The part of a tile's queries that a team computes.
struct Tile {
  int head = 0, heads = 0;      ///< of those that share keys; heads 0: there is nothing to do
  int first_query = 0;          ///< of the sequence
  bool begins_keys = false;     ///< no other tile has added to these keys
  bool ends_keys = false;       ///< nor will
  bool begins_queries = false;  ///< no other tile has added to these queries
  bool ends_queries = false;    ///< nor will
};

/// A launch of the backward pass.
struct Wave {
  int side;    ///< of a tile; at least as many as the longest sequence has where that is one tile
  int tiles;   ///< of the longest sequence, in each direction
  int number;  ///< i + j

  /// Launches that the heads of a group take. One tile has them all in one launch.
  int count(int group) const { return tiles == 1 ? 1 : (group + 1) * tiles - 1; }

  /// The part that this launch computes of the j-th keys of a sequence.
  KOKKOS_INLINE_FUNCTION Tile tile(int j, int group, int length, bool causal) const {
    if (tiles == 1) return {0, group, 0, true, true, true, true};
    const int own_tiles = (length + side - 1) / side, i = number - j;
    if (i < 0 || i >= group * tiles) return {};
    const int head = i / tiles, of_queries = i % tiles, first = causal ? j : 0;
    if (j >= own_tiles || of_queries >= own_tiles || of_queries < first) return {};
    return {.head = head,
            .heads = 1,
            .first_query = of_queries * side,
            .begins_keys = head == 0 && of_queries == first,
            .ends_keys = head == group - 1 && of_queries == own_tiles - 1,
            .begins_queries = j == 0,
            .ends_queries = j == (causal ? of_queries : own_tiles - 1)};
  }
};

/// The first wave over sequences of which the longest has so many rows. Without an array for sums between tiles each
/// sequence is one tile.
Wave first_wave(std::size_t longest, bool has_partial_sums);

/// Parts of queries in the forward pass, which read keys in tiles of as many.
struct QueryParts {
  int side;   ///< queries of a part; at least as many as the longest sequence has where that is one part
  int parts;  ///< of the longest sequence
};

QueryParts query_parts(std::size_t longest);

}  // namespace mylos::attention
