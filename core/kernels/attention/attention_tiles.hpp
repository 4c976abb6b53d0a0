#pragma once

#include "core/kernels/attention/attention.hpp"
#include "core/kernels/attention/attention_blocks.hpp"
#include "core/work.hpp"

#include <optional>

/// Distribution of attention over teams for long sequences. The order of summation does not depend on how a sequence is
/// cut, so neither do the results.
///
/// Forward: each query has its own sums, so a team takes a block of queries and loops over the keys visible to them.
/// Backward: queries are summed over keys and keys over queries, so a sequence is cut into tiles. Tile (i, j) covers
/// the i-th block of queries (of all heads that use the same keys, one head after the other) and the j-th block of
/// keys. It continues the sums of keys from tile (i-1, j) and the sums of queries from tile (i, j-1). Tiles with equal
/// i + j are independent and form a wave, which is one launch.
namespace mylos::attention {

/// Queries and keys per tile if a sequence has several tiles.
inline constexpr int tile_side = 256;
static_assert(tile_side % key_block == 0 && tile_side % query_block == 0 && tile_side <= longest_attention_tile);

KOKKOS_INLINE_FUNCTION constexpr int at_most(int value, int most) { return value < most ? value : most; }
KOKKOS_INLINE_FUNCTION constexpr int at_least(int value, int least) { return value < least ? least : value; }

/// The part of a tile's queries that a team computes.
struct Tile {
  int head = 0, heads = 0;    ///< among those that use the same keys; heads 0: nothing to do
  int first_query = 0;        ///< row in the sequence
  bool begins_keys = false;   ///< first tile that adds to these keys
  bool ends_keys = false;     ///< last tile that adds to these keys
  bool ends_queries = false;  ///< last tile that adds to these queries
};

/// A launch of the backward pass.
struct Wave {
  int side;    ///< per tile; at least the longest sequence if that is one tile
  int tiles;   ///< tiles of the longest sequence in each direction
  int number;  ///< i + j

  /// Number of launches for the heads of a group. A single tile takes all heads in one launch.
  int count(int group) const { return tiles == 1 ? 1 : (group + 1) * tiles - 1; }

  /// Returns the part of the j-th keys of a sequence that this launch computes.
  KOKKOS_INLINE_FUNCTION Tile tile(int j, int group, int length, const AttentionShape& shape) const {
    if (tiles == 1) return {0, group, 0, true, true, true};
    const int own_tiles = (length + side - 1) / side, i = number - j;
    if (i < 0 || i >= group * tiles || j >= own_tiles) return {};
    const int head = i / tiles, of_queries = i % tiles, first = shape.causal ? j : 0;
    const int last = (shape.mask().end_of_queries((j + 1) * side - 1, length) - 1) / side;
    if (of_queries < first || of_queries > last) return {};
    return {.head = head,
            .heads = 1,
            .first_query = of_queries * side,
            .begins_keys = head == 0 && of_queries == first,
            .ends_keys = head == group - 1 && of_queries == last,
            .ends_queries = j == (shape.causal ? of_queries : own_tiles - 1)};
  }
};

/// Returns the first wave for sequences of up to `longest` rows. Without an array for partial sums, each sequence is
/// one tile.
Wave first_wave(std::size_t longest, bool has_partial_sums);

/// Launches the waves of tiles in sequence: each continues the sums of the previous wave. `work` is that of all.
template <class Backward>
void launch_waves(const Policy& policy, Backward backward, const std::optional<Work>& work) {
  const AttentionShape& shape = backward.shape;
  const int waves = backward.wave.count(static_cast<int>(shape.heads / shape.key_value_heads));
  std::optional<Work> of_wave = work;
  if (work.has_value()) of_wave = Work{work->flops / waves, work->bytes / waves};
  for (backward.wave.number = 0; backward.wave.number < waves; ++backward.wave.number) {
    Kokkos::parallel_for(with_work("mylos::Attention::backward", of_wave), with_functor_as_argument(policy), backward);
  }
}

/// Blocks of queries in the forward pass. A pass that copies keys reads them in tiles of the same size.
struct QueryParts {
  int side;   ///< queries per part; at least the longest sequence if that is one part
  int parts;  ///< parts of the longest sequence
};

QueryParts query_parts(std::size_t longest);

}  // namespace mylos::attention
