#include "core/batch_rows.hpp"

#include "core/base/error.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

using BatchRange = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::size_t>>;

/// Adjacent rows per thread. On a device adjacent threads write adjacent rows; on a host a search serves many rows.
constexpr std::size_t located_rows = kernels_in_teams ? 1 : 1024;

struct LocateRows {
  PackedSamples samples;
  Vector<std::int32_t> positions;
  Vector<std::uint32_t> samples_of_rows;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t block) const {
    const std::size_t begin = block * located_rows, rest = positions.extent(0) - begin;
    std::size_t sample = sample_of(begin);
    for (std::size_t row = begin; row < begin + (rest < located_rows ? rest : located_rows); ++row) {
      while (samples.starts(sample + 1) <= row) ++sample;
      const std::size_t first = samples.first_positions.extent(0) == 0 ? 0 : samples.first_positions(sample);
      positions(row) = static_cast<std::int32_t>(first + row - samples.starts(sample));
      samples_of_rows(row) = static_cast<std::uint32_t>(sample);
    }
  }

  /// Returns the last sample that starts at or before `row`.
  KOKKOS_INLINE_FUNCTION std::size_t sample_of(std::size_t row) const {
    std::size_t sample = 0, after = samples.starts.extent(0) - 1;
    while (after - sample > 1) {
      const std::size_t middle = sample + (after - sample) / 2;
      (samples.starts(middle) <= row ? sample : after) = middle;
    }
    return sample;
  }
};

struct GroupRowsAtPosition {
  ConstVector<std::size_t> starts;
  Vector<std::int32_t> values;
  Vector<std::uint32_t> group_starts, rows;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t position) const {
    const std::size_t samples = starts.extent(0) - 1;
    std::size_t next = 0;  // rows at earlier positions
    for (std::size_t sample = 0; sample < samples; ++sample) {
      const std::size_t length = starts(sample + 1) - starts(sample);
      next += length < position ? length : position;
    }
    group_starts(position) = static_cast<std::uint32_t>(next);
    if (position == values.extent(0)) return;
    values(position) = static_cast<std::int32_t>(position);
    for (std::size_t sample = 0; sample < samples; ++sample) {
      const std::size_t row = starts(sample) + position;
      if (row < starts(sample + 1)) rows(next++) = static_cast<std::uint32_t>(row);
    }
  }
};

}  // namespace

void locate_rows(const ExecutionSpace& space, const PackedSamples& samples, const Vector<std::int32_t>& positions,
                 const Vector<std::uint32_t>& samples_of_rows) {
  const std::size_t rows = positions.extent(0), firsts = samples.first_positions.extent(0);
  require(samples.starts.extent(0) > (rows > 0 ? 1 : 0) && samples_of_rows.extent(0) == rows &&
              (firsts == 0 || firsts + 1 == samples.starts.extent(0)),
          fmt::format("batch rows: {} starts and {} first positions for {} positions and {} samples of rows",
                      samples.starts.extent(0), firsts, rows, samples_of_rows.extent(0)));
  if (rows == 0) return;
  const Work work = work_of(rows, 0.0, sizeof(std::int32_t) + sizeof(std::uint32_t));
  Kokkos::parallel_for(with_work("mylos::Batch::locate_rows", work),
                       BatchRange(space, 0, (rows + located_rows - 1) / located_rows),
                       LocateRows{samples, positions, samples_of_rows});
}

void group_rows_by_position(const ExecutionSpace& space, const ConstVector<std::size_t>& starts,
                            const Vector<std::int32_t>& values, const Vector<std::uint32_t>& group_starts,
                            const Vector<std::uint32_t>& rows) {
  require(starts.extent(0) > 0 && group_starts.extent(0) == values.extent(0) + 1,
          fmt::format("batch rows: {} starts for {} positions and {} starts of groups", starts.extent(0),
                      values.extent(0), group_starts.extent(0)));
  const Work work = work_of(rows.extent(0), 0.0, sizeof(std::uint32_t)) +
                    work_of(values.extent(0), 0.0, sizeof(std::int32_t) + sizeof(std::uint32_t));
  Kokkos::parallel_for(with_work("mylos::Batch::group_rows_by_position", work),
                       BatchRange(space, 0, group_starts.extent(0)),
                       GroupRowsAtPosition{starts, values, group_starts, rows});
}

}  // namespace mylos
