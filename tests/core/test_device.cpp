#include "core/device.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace mylos {
namespace {

using Clock = std::chrono::steady_clock;

/// Adds ones for a while.
void launch(const ExecutionSpace& space, const Vector<float>& x) {
  for (int i = 0; i < 20; ++i) {
    Kokkos::parallel_for(
        "test::add", Kokkos::RangePolicy<ExecutionSpace>(space, 0, x.size()),
        KOKKOS_LAMBDA(std::size_t j) { x(j) += 1.0f; });
  }
}

TEST(LaunchTime, IsThatOfTheLaunchesBefore) {
  const ExecutionSpace space;
  const Vector<float> x("test::x", 1 << 20);
  launch(space, x);
  space.fence("test::warm_up");
  LaunchTime before, between, after;
  const Clock::time_point begin = Clock::now();
  before.set(space);
  launch(space, x);
  between.set(space);
  launch(space, x);
  launch(space, x);
  after.set(space);
  const double whole = after.seconds_since(before);
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  const double first = between.seconds_since(before), second = after.seconds_since(between);
  EXPECT_GT(first, 0.0);
  EXPECT_GT(second, 0.0);
  EXPECT_NEAR(first + second, whole, 1e-5);
  EXPECT_LE(whole, elapsed + 1e-5);
  if (!runs_on_host) EXPECT_GE(whole, 0.2 * elapsed);  // the waiting is for what lies between
}

TEST(LaunchTime, MayBeSetAgain) {
  const ExecutionSpace space;
  const Vector<float> x("test::x", 1 << 16);
  LaunchTime before, after;
  before.set(space);
  launch(space, x);
  after.set(space);
  const double first = after.seconds_since(before);
  launch(space, x);
  after.set(space);
  EXPECT_GT(after.seconds_since(before), first);
}

}  // namespace
}  // namespace mylos
