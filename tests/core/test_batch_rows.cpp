#include "core/batch_rows.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/tool_callbacks.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace mylos {
namespace {

using ::testing::HasSubstr;
using tests::device_integers;
using tests::error_of;

using Lengths = std::vector<std::size_t>;

template <class T>
std::vector<T> vector_on_host(const Vector<T>& device) {
  const auto copy = Kokkos::create_mirror_view_and_copy(HostSpace(), device);
  return {copy.data(), copy.data() + copy.size()};
}

Lengths starts_of(const Lengths& lengths) {
  Lengths starts{0};
  for (const std::size_t length : lengths) starts.push_back(starts.back() + length);
  return starts;
}

/// Returns many samples of uneven lengths, of which some are empty.
Lengths uneven_lengths(std::size_t samples, std::size_t longest) {
  Lengths lengths;
  for (std::size_t i = 0; i < samples; ++i) lengths.push_back(i * i % (longest + 1));
  return lengths;
}

/// Batches without rows, of one row, of samples without rows at both ends and between others, of many samples, and of
/// one sample with rows for several threads.
std::vector<Lengths> packings() {
  return {{},
          {0},
          {0, 0},
          {1},
          {0, 1},
          {1, 0},
          {0, 0, 3, 0, 0, 2, 0},
          Lengths(1000, 1),
          uneven_lengths(5000, 9),
          {5000},
          {1024},
          {1023, 1},
          {1025, 2048, 7}};
}

/// The arrays that the device computes, filled by the host row by row.
struct HostRows {
  std::vector<std::int32_t> positions;
  std::vector<std::uint32_t> samples;

  HostRows(const Lengths& lengths, const Lengths& first_positions) {
    for (std::size_t sample = 0; sample < lengths.size(); ++sample) {
      for (std::size_t row = 0; row < lengths[sample]; ++row) {
        positions.push_back(static_cast<std::int32_t>(row + (first_positions.empty() ? 0 : first_positions[sample])));
        samples.push_back(static_cast<std::uint32_t>(sample));
      }
    }
  }
};

void expect_located(const Lengths& lengths, const Lengths& first_positions) {
  SCOPED_TRACE(fmt::format("{} samples of {} rows", lengths.size(), starts_of(lengths).back()));
  const HostRows expected(lengths, first_positions);
  const Vector<std::int32_t> positions("test::positions", expected.positions.size());
  const Vector<std::uint32_t> samples("test::samples", expected.samples.size());
  const ExecutionSpace space;
  locate_rows(space, {device_integers(starts_of(lengths)), device_integers(first_positions)}, positions, samples);
  space.fence("test::expect_located");
  EXPECT_EQ(vector_on_host(positions), expected.positions);
  EXPECT_EQ(vector_on_host(samples), expected.samples);
}

TEST(BatchRows, PositionsFromTheSamplesFirstOnAreThoseOfALoop) {
  for (const Lengths& lengths : packings()) {
    expect_located(lengths, {});
    Lengths first(lengths.size());
    for (std::size_t i = 0; i < first.size(); ++i) first[i] = (7 * i + 3) % 4096;
    expect_located(lengths, first);
  }
}

TEST(BatchRows, GroupsByPositionAreThoseOfAStableSort) {
  const ExecutionSpace space;
  for (const Lengths& lengths : packings()) {
    SCOPED_TRACE(fmt::format("{} samples of {} rows", lengths.size(), starts_of(lengths).back()));
    const HostRows host(lengths, {});
    std::vector<std::uint32_t> sorted(host.positions.size());
    std::iota(sorted.begin(), sorted.end(), 0u);
    std::ranges::stable_sort(sorted, {}, [&](std::uint32_t row) { return host.positions[row]; });
    const std::size_t longest = lengths.empty() ? 0 : *std::ranges::max_element(lengths);
    const Vector<std::int32_t> values("test::values", longest);
    const Vector<std::uint32_t> group_starts("test::starts", longest + 1), rows("test::rows", sorted.size());
    group_rows_by_position(space, device_integers(starts_of(lengths)), values, group_starts, rows);
    space.fence("test::group_rows");
    std::vector<std::int32_t> expected_values(longest);
    std::iota(expected_values.begin(), expected_values.end(), 0);
    std::vector<std::uint32_t> expected_starts;
    for (std::int32_t position = 0; position <= static_cast<std::int32_t>(longest); ++position) {
      const auto before = std::ranges::count_if(host.positions, [&](std::int32_t other) { return other < position; });
      expected_starts.push_back(static_cast<std::uint32_t>(before));
    }
    EXPECT_EQ(vector_on_host(values), expected_values);
    EXPECT_EQ(vector_on_host(group_starts), expected_starts);
    EXPECT_EQ(vector_on_host(rows), sorted);
  }
}

TEST(BatchRows, ErrorsNameTheSizes) {
  const Vector<std::size_t> starts("test::starts", 3), none;
  const Vector<std::int32_t> positions("test::positions", 5);
  const Vector<std::uint32_t> samples("test::samples", 4);
  EXPECT_THAT(error_of([&] {
                locate_rows({}, {starts, none}, positions, samples);
              }),
              HasSubstr("batch rows: 3 starts and 0 first positions for 5 positions and 4 samples of rows"));
  EXPECT_THAT(error_of([&] {
                locate_rows({}, {starts, slice(starts, 0, 1)}, positions, samples);
              }),
              HasSubstr("3 starts and 1 first positions"));
  EXPECT_THAT(error_of([&] { group_rows_by_position({}, starts, positions, samples, samples); }),
              HasSubstr("batch rows: 3 starts for 5 positions and 4 starts of groups"));
}

TEST(BatchRows, ABatchWithoutRowsLaunchesNothing) {
  const Vector<std::size_t> starts("test::starts", 1);
  const tests::KokkosRecorder recorder;
  locate_rows({}, {starts, {}}, {}, {});
  EXPECT_THAT(recorder.launches(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace mylos
