#pragma once

#include "core/kernels/dropout.hpp"
#include "core/kernels/dropout_lanes.hpp"
#include "core/kernels/team.hpp"

/// Dropout within a loop over the columns of a row.
namespace mylos {

/// Calls body(column, factor) for the columns [begin, begin + 8 groups) of a row, or up to its end.
template <int groups, class Body>
KOKKOS_FORCEINLINE_FUNCTION void for_each_kept_of(const DropoutKey& dropout, const DropoutRows& rows, std::size_t row,
                                                  std::size_t begin, std::size_t columns, const Body& body) {
  constexpr std::size_t width = groups * dropout_group;
  const std::uint32_t sample = rows.sample_ids(rows.samples_of_rows(row));
  const auto position = static_cast<std::uint32_t>(rows.positions(row));
  const auto first = static_cast<std::uint32_t>(begin / dropout_group);
  DrawLanes<groups> lanes;
  MYLOS_ROLLED
  for (int i = 0; i < groups; ++i) lanes.set(i, dropout, sample, position, 0, first + static_cast<std::uint32_t>(i));
  lanes.draw(dropout.philox_key());
  std::uint32_t words[4 * groups];
  lanes.store(words);
  const std::uint32_t threshold = dropout.threshold();
  const float scale = dropout.scale();
  team_for(HostTeam{}, columns - begin < width ? columns - begin : width,
           [&](std::size_t i) { body(begin + i, stored_draw(words, i) < threshold ? 0.0f : scale); });
}

/// Calls body(column, factor) for each column of a row. factor is 0 for a dropped element, 1 / (1 - p) for a kept one,
/// and always 1 if dropout is off. A host thread draws for 256 or 128 columns at once.
template <class Body>
KOKKOS_FORCEINLINE_FUNCTION void for_each_kept(const HostTeam& team, const DropoutKey& dropout, const DropoutRows& rows,
                                               std::size_t row, std::size_t columns, const Body& body) {
  if (!dropout.active()) return team_for(team, columns, [=](std::size_t i) { body(i, 1.0f); });
  std::size_t begin = 0;
  for (; columns - begin >= 32 * dropout_group; begin += 32 * dropout_group) {
    for_each_kept_of<32>(dropout, rows, row, begin, columns, body);
  }
  for (; begin < columns; begin += 16 * dropout_group) {
    for_each_kept_of<16>(dropout, rows, row, begin, columns, body);
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

/// Dropout of rows whose threads hold eight adjacent columns at a time. Draws may be made before their use, so that
/// this takes place while loads are in flight. Without dropout nothing is drawn, and all factors are 1.
struct HeldDropout {
  const DropoutKey& key;
  const DropoutRows& rows;
  std::uint32_t threshold = 0;
  float scale = 1.0f;

  KOKKOS_FORCEINLINE_FUNCTION HeldDropout(const DropoutKey& of, const DropoutRows& packed) : key(of), rows(packed) {
    if (!key.active()) return;
    threshold = key.threshold();
    scale = key.scale();
  }

  struct Row {
    std::uint32_t sample = 0, position = 0;
  };
  KOKKOS_FORCEINLINE_FUNCTION Row row(std::size_t index) const {
    if (!key.active()) return {};
    return {rows.sample_ids(rows.samples_of_rows(index)), static_cast<std::uint32_t>(rows.positions(index))};
  }
  /// Draws for the columns [column, column + 8); `column` must be a multiple of 8.
  KOKKOS_FORCEINLINE_FUNCTION DropoutDraw draw(const Row& row, std::size_t column) const {
    if (!key.active()) return {};
    return dropout_draw(key, row.sample, row.position, 0, static_cast<std::uint32_t>(column) / dropout_group);
  }
  KOKKOS_FORCEINLINE_FUNCTION float factor(const DropoutDraw& draw, unsigned j) const {
    return draw[j] < threshold ? 0.0f : scale;
  }
};

}  // namespace mylos
