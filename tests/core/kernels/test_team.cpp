#include "core/kernels/team.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

/// Team loops in this build's backend, including those that only devices use, on teams of one host thread.
namespace mylos {
namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();

struct LargestOfPrefix {
  ConstVector<float> values;
  Vector<float> largest;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const ConstVector<float> all = values;
    const float found = team_max(team, row, [=](std::size_t i) { return all(i); });
    Kokkos::single(Kokkos::PerTeam(team), [&] { largest(row) = found; });
  }
};

struct LargestOfPrefixByHostTeam {
  ConstVector<float> values;
  Vector<float> largest;

  void operator()(std::size_t row) const {
    largest(row) = team_max(HostTeam{}, row, [this](std::size_t i) { return values(i); });
  }
};

/// Returns the maximum of the first 0, 1, 2, ... values, computed by teams of the kind used on devices.
std::vector<float> prefix_maxima(const std::vector<float>& values) {
  const std::size_t n = values.size();
  const Vector<float> input("test::values", n), output("test::largest", n + 1);
  const HostVector<float> all("test::host", n + 1);
  std::copy(values.begin(), values.end(), all.data());
  Kokkos::deep_copy(input, Kokkos::subview(all, Kokkos::make_pair(std::size_t{0}, n)));
  const Kokkos::TeamPolicy<ExecutionSpace> policy(ExecutionSpace(), static_cast<int>(n) + 1,
                                                  kernels_in_teams ? team_size(ExecutionSpace()) : 1);
  Kokkos::parallel_for("mylos::test::largest", policy, DeviceRows<LargestOfPrefix>{{input, output}});
  Kokkos::deep_copy(all, output);
  return {all.data(), all.data() + n + 1};
}

/// The sums of a row's first elements by one team: in double, and twice in a row as two floats.
template <int threads>
struct SumsOfPrefix {
  ConstVector<float> values;
  Vector<double> sums;    ///< (rows)
  Matrix<float> of_both;  ///< (rows, 4): sum and sum of doubled values, twice

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    double sum[1] = {};
    float both[2] = {}, again[2] = {};
    for_items_of_thread(team, row, [&](std::size_t i) {
      sum[0] += values(i);
      both[0] += values(i);
      both[1] += 2.0f * values(i);
    });
    add_over_team<threads>(team, sum);
    for (int i = 0; i < 2; ++i) again[i] = both[i];
    add_over_team<threads>(team, both);
    add_over_team<threads>(team, again);
    if (team.team_rank() + 1 != team.team_size()) return;  // all threads have the sums; the last one writes them
    sums(row) = sum[0];
    for (std::size_t i = 0; i < 2; ++i) {
      of_both(row, i) = both[i];
      of_both(row, 2 + i) = again[i];
    }
  }
};

template <int threads>
void expect_sums_of_teams() {
  constexpr std::size_t n = 2100;
  const Vector<float> values("test::values", n);
  const HostVector<float> all("test::host", n);
  for (std::size_t i = 0; i < n; ++i) all(i) = static_cast<float>(i % 7) - 2.0f;  // sums are exact in any order
  Kokkos::deep_copy(values, all);
  const Vector<double> sums("test::sums", n + 1);
  const Matrix<float> of_both("test::of_both", n + 1, 4);
  const Kokkos::TeamPolicy<ExecutionSpace, Kokkos::LaunchBounds<threads, 1>> policy(
      ExecutionSpace(), static_cast<int>(n) + 1,
      runs_on_host ? (kernels_in_teams ? team_size(ExecutionSpace()) : 1) : threads);
  Kokkos::parallel_for("mylos::test::sums", policy, DeviceRows<SumsOfPrefix<threads>>{{values, sums, of_both}});
  const auto found = Kokkos::create_mirror_view_and_copy(HostSpace(), sums);
  const auto both = Kokkos::create_mirror_view_and_copy(HostSpace(), of_both);
  float expected = 0.0f;
  for (std::size_t row = 0; row <= n; ++row) {
    EXPECT_EQ(found(row), expected) << row;
    for (const std::size_t first : {0u, 2u}) {
      EXPECT_EQ(both(row, first), expected) << row;
      EXPECT_EQ(both(row, first + 1), 2.0f * expected) << row;
    }
    if (row < n) expected += all(row);
  }
}

TEST(TeamSum, OfTeamsOfOneToThirtyTwoWarps) {
  expect_sums_of_teams<32>();
  expect_sums_of_teams<64>();
  expect_sums_of_teams<256>();
  expect_sums_of_teams<1024>();
}

TEST(TeamMax, OfNothingIsMinusInfinity) {
  EXPECT_EQ(prefix_maxima({3.0f, 5.0f, -1.0f}), (std::vector<float>{-infinite, 3.0f, 5.0f, 5.0f}));
}

TEST(TeamMax, OfMinusInfinitiesIsMinusInfinity) {
  EXPECT_EQ(prefix_maxima({-infinite, -infinite, -2e38f}),
            (std::vector<float>{-infinite, -infinite, -infinite, -2e38f}));
}

TEST(TeamMax, OfManyIsTheLargest) {
  std::vector<float> values(1000), expected(1, -infinite);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i * i));
    expected.push_back(std::max(expected.back(), values[i]));
  }
  EXPECT_EQ(prefix_maxima(values), expected);
}

TEST(TeamMax, OfAHostTeamIsTheSame) {
  if constexpr (runs_on_host) {
    const Vector<float> values("test::values", 2), largest("test::largest", 3);
    values(0) = -3.0f;
    values(1) = 4.0f;
    for (std::size_t row = 0; row < 3; ++row) LargestOfPrefixByHostTeam{values, largest}(row);
    EXPECT_EQ(largest(0), -infinite);
    EXPECT_EQ(largest(1), -3.0f);
    EXPECT_EQ(largest(2), 4.0f);
  } else {
    GTEST_SKIP() << "Devices have no host teams";
  }
}

}  // namespace
}  // namespace mylos
