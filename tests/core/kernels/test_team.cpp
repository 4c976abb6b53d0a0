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
