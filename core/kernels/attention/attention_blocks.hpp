#pragma once

#include "core/kernels/attention/attention.hpp"
#include "core/kernels/attention/attention_products.hpp"
#include "core/kernels/dropout_lanes.hpp"

#include <algorithm>
#include <cstdint>

/// Common parts of attention's forward and backward passes other than products: block sizes, scratch memory and dropout
/// draws.
namespace mylos::attention {

/// The multiple to which key rows are padded, and the number of partial sums per row.
inline constexpr int lanes = 32;
/// Query rows and keys per block of scores. A device's team has less fast memory: for heads of 64 the backward pass
/// needs 45 KB with 64 keys, but 107 KB with 256, more than some devices have.
inline constexpr int query_block = 32;
inline constexpr int key_block = kernels_in_teams ? 64 : 256;
static_assert(query_block % tile_rows == 0 && query_block % 2 == 0 && key_block % query_block == 0 &&
              key_block % lanes == 0);
static_assert(lanes % panel == 0 && panel % tile_columns == 0 && panel % square == 0 && key_block % panel == 0);
static_assert(lanes == 2 * tile_register_side && query_block / 2 <= square, "a product in tile registers reads these");

/// The multiple to which the rows of a block of queries are padded with zeros: a product over pairs of rows may read
/// all of them.
template <class Operand>
inline constexpr int query_padding = inner_of<Operand> > 1 ? query_block : tile_rows;

/// The block sizes for one launch.
struct BlockSizes {
  int padded_keys, depth, block_keys;  ///< for the longest sequence; multiples of `lanes`
  int fast_level = 0;                  ///< scratch level of the arrays meant for fast memory

  BlockSizes(int longest, int head_size)
      : padded_keys(round_up(longest, lanes)),
        depth(round_up(head_size, lanes)),
        block_keys(padded_keys < key_block ? padded_keys : key_block) {}
};

/// Scratch arrays are aligned to cache lines.
inline constexpr std::size_t scratch_alignment = 64;

/// Returns the bytes of scratch for `floats` floats in `arrays` arrays, with alignment.
inline std::size_t scratch_bytes(std::size_t floats, std::size_t arrays) {
  return floats * sizeof(float) + arrays * scratch_alignment;
}

/// Bytes of fast memory that a team has on every device: 48 KiB less the memory of Kokkos' team reductions.
inline constexpr std::size_t fast_memory = 46 << 10;

/// Returns whether the fast arrays fit into a device's fast memory. If not, they use large memory.
template <class Sizes>
bool fits_fast_memory(const Sizes& sizes) {
  return sizes.fast() <= fast_memory;
}

/// Bytes of large memory per team on a device.
template <class Sizes>
std::size_t large_bytes_on_device(const Sizes& sizes) {
  return sizes.large() + (fits_fast_memory(sizes) ? 0 : sizes.fast());
}

/// Launches one team for each of `league` parts. The team size is fixed on a device: a block of products has no work
/// for the additional threads that Kokkos would choose for occupancy, and they would only wait.
inline Policy make_policy(const ExecutionSpace& space, std::size_t league) {
  const auto teams = static_cast<int>(league);
  return kernels_in_teams ? Policy(space, teams, team_size(space)) : Policy(space, teams, Kokkos::AUTO);
}

/// Sets the scratch sizes of `policy`.
template <class Sizes>
void set_scratch(Policy& policy, Sizes& sizes) {
  if (kernels_in_teams && !fits_fast_memory(sizes)) sizes.fast_level = 1;
  if (sizes.fast_level == 0) policy.set_scratch_size(0, Kokkos::PerTeam(sizes.fast()));
  policy.set_scratch_size(1, Kokkos::PerTeam(kernels_in_teams ? large_bytes_on_device(sizes) : sizes.large()));
}

/// Number of teams of a launch that run at once on a device with `threads` threads; Kokkos allocates large memory for
/// these only. A host that runs these kernels may have fewer threads than a device's team.
inline std::size_t teams_at_once(std::size_t league, std::size_t threads) {
  const std::size_t of_team = std::min<std::size_t>(threads, device_team_size);
  return of_team == 0 ? 0 : std::min(league, threads / of_team);
}

/// Bytes of large memory that Kokkos allocates for a launch of `league` teams.
template <class Sizes>
std::size_t all_large_bytes_on_device(const Sizes& sizes, std::size_t league, std::size_t threads) {
  return teams_at_once(league, threads) * large_bytes_on_device(sizes);
}

/// Bytes of scratch, outside a device's fast memory, that Kokkos allocates for a launch of `league` teams.
template <class Sizes>
std::size_t all_scratch_bytes(const Sizes& sizes, std::size_t league, const TeamProcessor& processor) {
  if (!processor.on_host) return all_large_bytes_on_device(sizes, league, processor.threads);
  return league == 0 ? 0 : processor.threads * (sizes.large() + sizes.fast());
}

/// Allocates the next array from scratch level `level` (0: the team's fast memory, 1: large). Every operand type has
/// the size of a float.
template <class Element = float>
KOKKOS_INLINE_FUNCTION Element* take(const Team& team, int level, int size) {
  return static_cast<Element*>(team.team_scratch(level).get_shmem_aligned(
      size * sizeof(Element), static_cast<std::ptrdiff_t>(scratch_alignment)));
}

/// The probabilities of a block of scores that dropout keeps. The draws equal those of `dropout_draw`, but are made for
/// `lanes` groups of keys at once: one at a time they would cost more than the products.
struct DropoutBlock {
  const std::uint32_t* words;  ///< (rows, words_per_row): two draws per word, the lower half first
  int words_per_row;
  std::uint32_t threshold;

  /// The draws of a row, 16 bits each in key order, for `stored_draw`.
  KOKKOS_INLINE_FUNCTION const std::uint32_t* row(int row) const { return words + row * words_per_row; }
};

/// Words of scratch per DropoutBlock, for a block of scores with `keys` keys: whole chunks of draws, plus the elements
/// that a loop over `lanes` keys reads beyond the last row.
KOKKOS_INLINE_FUNCTION constexpr int dropout_words(int keys) {
  return round_up(query_block * (round_up(keys, dropout_group) / 2), 4 * lanes) + lanes;
}

/// The position of a block of scores, for its draws.
struct DropoutPosition {
  std::uint32_t sample, head;
  int first_query, first_key;
};

/// Writes the draws of `lanes` groups of keys, four words each, starting at group `first`, counted along the rows of
/// the block. The same words as from `dropout_draw`.
KOKKOS_INLINE_FUNCTION void draw_lanes(const DropoutKey& key, const DropoutPosition& position, int groups_per_row,
                                       int first, std::uint32_t* KOKKOS_RESTRICT words) {
  DrawLanes<lanes> x;
  const float per_group = 1.0f / static_cast<float>(groups_per_row);
  const int first_group = position.first_key / static_cast<int>(dropout_group) + first;
  for (int i = 0; i < lanes; ++i) {
    // Exact: the quotient is at least 0.5 / groups_per_row away from an integer.
    const int row = static_cast<int>((static_cast<float>(first + i) + 0.5f) * per_group);
    x.set(i, key, position.sample, static_cast<std::uint32_t>(position.first_query + row), position.head,
          static_cast<std::uint32_t>(first_group + i - row * groups_per_row));
  }
  x.draw(key.philox_key());
  x.store(words);
}

/// Draws for a block of scores (rows, keys) into `scratch`.
KOKKOS_INLINE_FUNCTION DropoutBlock draw_block(const Team& team, const DropoutKey& key, const DropoutPosition& position,
                                               int rows, int keys, float* scratch) {
  auto* words = reinterpret_cast<std::uint32_t*>(scratch);
  const int groups_per_row = round_up(keys, dropout_group) / static_cast<int>(dropout_group);
  const int chunks = (rows * groups_per_row + lanes - 1) / lanes;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, chunks), [&](int chunk) {
    draw_lanes(key, position, groups_per_row, chunk * lanes, words + chunk * 4 * lanes);
  });
  return {words, 4 * groups_per_row, key.threshold()};
}

/// Combines partial results in a fixed order by repeated halving. A template, so that trip counts are constant.
template <int count = lanes, class Combine>
KOKKOS_INLINE_FUNCTION float fold(float (&lane)[lanes], const Combine& combine) {
  if constexpr (count > 1) {
    MYLOS_ROLLED
    for (int j = 0; j < count / 2; ++j) lane[j] = combine(lane[j], lane[j + count / 2]);
    return fold<count / 2>(lane, combine);
  }
  return lane[0];
}

/// Exponentials are computed as powers of two.
inline constexpr float log2_e = 1.44269504f;

/// Masks the keys of a row outside of [begin, end).
KOKKOS_INLINE_FUNCTION void hide_keys(int begin, int end, int padded, float* scores) {
  for (int k = 0; k < begin && k < padded; ++k) scores[k] = hidden_score;
  for (int k = end; k < padded; ++k) scores[k] = hidden_score;
}

/// The first key of the blocks that a block of queries from `query` on is multiplied by: that of its first query,
/// rounded down to a multiple of `step`.
KOKKOS_INLINE_FUNCTION int first_key_of_blocks(const AttentionShape& shape, int query, int step) {
  return shape.mask().first_key(query) / step * step;
}

/// Checks the arguments of both passes. Errors: std::invalid_argument showing both shapes.
void check_shapes(const AttentionShape& shape, const PackedSequences& sequences, std::size_t rows,
                  std::size_t qkv_columns, std::size_t out_columns);

}  // namespace mylos::attention
