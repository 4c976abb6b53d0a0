#include "core/index_groups.hpp"

#include "core/random.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace mylos {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::error_of;

using Indices = std::vector<std::int32_t>;

template <class T>
std::vector<T> vector_of(std::span<const T> values) {
  return {values.begin(), values.end()};
}

/// Expects the groups that std::stable_sort gives.
void expect_groups(const IndexGrouper& grouper, const Indices& indices) {
  std::vector<std::uint32_t> rows(indices.size()), starts;
  std::iota(rows.begin(), rows.end(), 0u);
  std::ranges::stable_sort(rows, {}, [&](std::uint32_t row) { return indices[row]; });
  Indices values;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (!values.empty() && values.back() == indices[rows[i]]) continue;
    values.push_back(indices[rows[i]]);
    starts.push_back(i);
  }
  starts.push_back(static_cast<std::uint32_t>(rows.size()));
  EXPECT_EQ(vector_of(grouper.values()), values);
  EXPECT_EQ(vector_of(grouper.starts()), starts);
  EXPECT_EQ(vector_of(grouper.rows()), rows);
}

Indices random_indices_below(std::size_t count, std::size_t bound, std::uint64_t seed) {
  Indices indices;
  for (std::size_t i = 0; i < count; ++i) {
    indices.push_back(static_cast<std::int32_t>(uniform_below(bound, seed, 0, i)));
  }
  return indices;
}

TEST(IndexGroups, AreThoseOfAStableSort) {
  IndexGrouper grouper;  // the same for all, as for the arrays of a batch
  std::uint64_t seed = 0;
  for (const std::size_t bound : {1u, 2u, 3u, 100u, 30522u}) {
    for (const std::size_t count : {0u, 1u, 2u, 17u, 4096u}) {
      SCOPED_TRACE(fmt::format("{} indices below {}", count, bound));
      const Indices indices = random_indices_below(count, bound, ++seed);
      grouper.group("tokens", indices);
      expect_groups(grouper, indices);
    }
  }
}

TEST(IndexGroups, HoldTheValuesAtBothEnds) {
  constexpr std::int32_t last = 128255;
  IndexGrouper grouper;
  for (const Indices& indices : {Indices{0}, Indices{last}, Indices{last, 0, last, 0}, Indices{0, last, 1, last - 1}}) {
    grouper.group("tokens", indices);
    expect_groups(grouper, indices);
  }
  grouper.group("tokens", Indices{last, 0, last});
  EXPECT_THAT(grouper.values(), ElementsAre(0, last));
  EXPECT_THAT(grouper.starts(), ElementsAre(0, 1, 3));
  EXPECT_THAT(grouper.rows(), ElementsAre(1, 0, 2));
}

TEST(IndexGroups, OfNothingAreEmpty) {
  IndexGrouper grouper;
  grouper.group("tokens", Indices{3, 1});
  grouper.group("tokens", {});
  EXPECT_THAT(grouper.values(), IsEmpty());
  EXPECT_THAT(grouper.starts(), ElementsAre(0));
  EXPECT_THAT(grouper.rows(), IsEmpty());
}

TEST(IndexGroups, RefuseNegativeIndicesAndStayUsable) {
  IndexGrouper grouper;
  EXPECT_THAT(error_of([&] {
                grouper.group("segments", Indices{5, -2, 5});
              }),
              HasSubstr("batch: \"segments\" has the index -2; indices begin at 0"));
  EXPECT_THAT(error_of([&] { grouper.group("segments", Indices{std::numeric_limits<std::int32_t>::min()}); }),
              HasSubstr("has the index -2147483648"));
  grouper.group("segments", Indices{5, 2, 5});
  expect_groups(grouper, {5, 2, 5});
}

TEST(IndexGroups, ReuseTheirMemory) {
  IndexGrouper grouper;
  Indices most(4096);
  std::iota(most.begin(), most.end(), 0);  // all distinct
  grouper.group("tokens", most);
  const auto* const values = grouper.values().data();
  const auto *const starts = grouper.starts().data(), *const rows = grouper.rows().data();
  for (const Indices& indices : {random_indices_below(1000, 4096, 8), most}) {
    grouper.group("tokens", indices);
    EXPECT_EQ(grouper.values().data(), values);
    EXPECT_EQ(grouper.starts().data(), starts);
    EXPECT_EQ(grouper.rows().data(), rows);
  }
}

}  // namespace
}  // namespace mylos
