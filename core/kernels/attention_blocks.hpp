#pragma once

#include "core/kernels/attention.hpp"
#include "core/kernels/attention_products.hpp"
#include "core/kernels/dropout_lanes.hpp"

#include <algorithm>
#include <cstdint>

/// What attention's forward and backward passes share beside products: sizes of blocks, scratch, dropout's draws.
namespace mylos::attention {

/// What rows of keys are padded to, and partial sums of a row.
inline constexpr int lanes = 32;
/// Query rows and keys of a block of scores. A device's team has less fast memory: with 64 keys the backward pass takes
/// 45 KB of it for heads of 64, with 256 it would take 107 KB, which some do not have.
inline constexpr int query_block = 32;
inline constexpr int key_block = kernels_in_teams ? 64 : 256;
static_assert(query_block % tile_rows == 0 && query_block % 2 == 0 && key_block % query_block == 0 &&
              key_block % lanes == 0);

/// What blocks are sized by.
struct BlockSizes {
  int padded_keys, depth, block_keys;  ///< of the longest sequence; multiples of `lanes`
  int fast_level = 0;                  ///< of scratch: where what should be in fast memory is

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

/// Bytes of fast memory that a device's team has at least, but for what Kokkos takes of 48 KiB for a team's sums.
inline constexpr std::size_t fast_memory = 46 << 10;

/// Heads that are too large for a device's fast memory work in large memory.
template <class Sizes>
bool fits_fast_memory(const Sizes& sizes) {
  return sizes.fast() <= fast_memory;
}

/// Bytes of large memory that a device's team works in.
template <class Sizes>
std::size_t large_bytes_on_device(const Sizes& sizes) {
  return sizes.large() + (fits_fast_memory(sizes) ? 0 : sizes.fast());
}

/// A team for each of `league` parts. A block of products has work for no more threads than a team has anywhere: those
/// that Kokkos adds for the sake of occupancy would only wait.
inline Policy make_policy(const ExecutionSpace& space, std::size_t league) {
  const auto teams = static_cast<int>(league);
  return kernels_in_teams ? Policy(space, teams, team_size(space)) : Policy(space, teams, Kokkos::AUTO);
}

/// Gives the teams of `policy` their scratch.
template <class Sizes>
void set_scratch(Policy& policy, Sizes& sizes) {
  if (kernels_in_teams && !fits_fast_memory(sizes)) sizes.fast_level = 1;
  if (sizes.fast_level == 0) policy.set_scratch_size(0, Kokkos::PerTeam(sizes.fast()));
  policy.set_scratch_size(1, Kokkos::PerTeam(kernels_in_teams ? large_bytes_on_device(sizes) : sizes.large()));
}

/// Teams of a launch of `league` teams that a device with `threads` threads runs at once: Kokkos takes large memory for
/// these only. A host that runs these kernels may have fewer threads than a device's team.
inline std::size_t teams_at_once(std::size_t league, std::size_t threads) {
  const std::size_t of_team = std::min<std::size_t>(threads, device_team_size);
  return of_team == 0 ? 0 : std::min(league, threads / of_team);
}

/// Bytes of large memory that Kokkos takes for a launch of `league` teams.
template <class Sizes>
std::size_t all_large_bytes_on_device(const Sizes& sizes, std::size_t league, std::size_t threads) {
  return teams_at_once(league, threads) * large_bytes_on_device(sizes);
}

/// Bytes of scratch that Kokkos takes for a launch of `league` teams, and that is not a device's fast memory.
template <class Sizes>
std::size_t all_scratch_bytes(const Sizes& sizes, std::size_t league, const TeamProcessor& processor) {
  if (!processor.on_host) return all_large_bytes_on_device(sizes, league, processor.threads);
  return league == 0 ? 0 : processor.threads * (sizes.large() + sizes.fast());
}

/// The next array of scratch level `level` (0: fast memory of the team, 1: large). An operand is as large as a float.
template <class Element = float>
KOKKOS_INLINE_FUNCTION Element* take(const Team& team, int level, int size) {
  return static_cast<Element*>(team.team_scratch(level).get_shmem_aligned(
      size * sizeof(Element), static_cast<std::ptrdiff_t>(scratch_alignment)));
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
struct DropoutPosition {
  std::uint32_t sample, head;
  int first_query, first_key;
};

/// Fills `lanes` times four words for the groups of keys from `first` on, counted along the rows of the block: what
/// `dropout_draw` gives for each.
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

/// Draws for a block of scores (rows, keys) into `words`.
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

/// Exponentials are powers of two.
inline constexpr float log2_e = 1.44269504f;

/// Hides the keys of a row that are beyond [0, n): their scores become -infinity, their probabilities 0.
KOKKOS_INLINE_FUNCTION void hide_keys(int n, int padded, float* scores) {
  for (int k = n; k < padded; ++k) scores[k] = -Kokkos::Experimental::infinity_v<float>;
}

/// What both passes ask of their arguments. Errors: std::invalid_argument showing both shapes.
void check_shapes(const AttentionShape& shape, const PackedSequences& sequences, std::size_t rows,
                  std::size_t qkv_columns, std::size_t out_columns);

}  // namespace mylos::attention
