#pragma once

#include "core/kernels/dropout.hpp"
#include "core/kernels/team.hpp"

/// Dropout within a loop over the columns of a row.
namespace mylos {

/// Groups of columns that a host thread draws at once, so that Philox runs in vector registers.
inline constexpr std::size_t dropout_host_groups = 16;

/// factors[i] = 0 for a dropped column and 1 / (1 - p) for a kept one, for the 128 columns from group `first` on.
KOKKOS_FORCEINLINE_FUNCTION void dropout_factors(const DropoutKey& dropout, const DropoutRows& rows, std::size_t row,
                                                 std::size_t first, float* factors) {
  constexpr std::size_t words = 4 * dropout_host_groups;
  std::uint32_t drawn[words];
  const std::uint32_t sample = rows.sample_ids(rows.samples_of_rows(row)), position = rows.positions(row);
  const auto begin = static_cast<std::uint32_t>(first);
  for (std::uint32_t group = 0; group < dropout_host_groups; ++group) {
    const RandomWords draw = dropout_draw(dropout, sample, position, 0, begin + group).words;
    drawn[4 * group] = draw.word[0];
    drawn[4 * group + 1] = draw.word[1];
    drawn[4 * group + 2] = draw.word[2];
    drawn[4 * group + 3] = draw.word[3];
  }
  const std::uint32_t threshold = dropout.threshold();
  const float scale = dropout.scale();
  for (std::size_t i = 0; i < words; ++i) {
    factors[2 * i] = (drawn[i] & 0xffffu) < threshold ? 0.0f : scale;
    factors[2 * i + 1] = (drawn[i] >> 16) < threshold ? 0.0f : scale;
  }
}

/// body(column, factor) for each column of a row, where factor is 0 for a dropped element and 1 / (1 - p) for a kept
/// one; 1 everywhere where dropout is off.
template <class Body>
KOKKOS_FORCEINLINE_FUNCTION void for_each_kept(const HostTeam& team, const DropoutKey& dropout, const DropoutRows& rows,
                                               std::size_t row, std::size_t columns, const Body& body) {
  if (!dropout.active()) return team_for(team, columns, [=](std::size_t i) { body(i, 1.0f); });
  constexpr std::size_t chunk = dropout_host_groups * dropout_group;
  float factors[chunk];
  for (std::size_t begin = 0; begin < columns; begin += chunk) {
    dropout_factors(dropout, rows, row, begin / dropout_group, factors);
    const std::size_t count = columns - begin < chunk ? columns - begin : chunk;
    team_for(team, count, [&, begin](std::size_t i) { body(begin + i, factors[i]); });
  }
}

template <class Team, class Body>
KOKKOS_FORCEINLINE_FUNCTION void for_each_kept(const Team& team, const DropoutKey& dropout, const DropoutRows& rows,
                                               std::size_t row, std::size_t columns, const Body& body) {
  if (!dropout.active()) return team_for(team, columns, [=](std::size_t i) { body(i, 1.0f); });
  const std::uint32_t threshold = dropout.threshold();
  const float scale = dropout.scale();
  team_for(team, (columns + dropout_group - 1) / dropout_group, [=, &rows, &dropout](std::size_t group) {
    const DropoutDraw draw = rows.draw(dropout, row, static_cast<std::uint32_t>(group));
    const std::size_t begin = group * dropout_group;
    for (unsigned j = 0; j < dropout_group && begin + j < columns; ++j) {
      body(begin + j, draw[j] < threshold ? 0.0f : scale);
    }
  });
}

}  // namespace mylos
