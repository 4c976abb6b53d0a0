#include "app/bench/step_profile.hpp"

#include "core/kernels/products/gemm.hpp"
#include "core/kernels/team.hpp"
#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <chrono>

namespace mylos::app {
namespace {

using Region = Kokkos::Profiling::ScopedRegion;
using Clock = std::chrono::steady_clock;

void wait(double seconds) {
  const Clock::time_point begin = Clock::now();
  while (std::chrono::duration<double>(Clock::now() - begin).count() < seconds) {
  }
}

constexpr Work work_of_kernel{3.0, 5.0};

/// Launches a kernel that reports its work, or one that does not.
void launch_reporting(const char* label) {
  for_each_element(with_work(label, work_of_kernel), ExecutionSpace(), 100, KOKKOS_LAMBDA(std::size_t){});
}

void launch(const char* label) { for_each_element(label, ExecutionSpace(), 100, KOKKOS_LAMBDA(std::size_t){}); }

TEST(StepProfile, TimeIsThatOfTheInnermostSpan) {
  StepProfile listener;
  const Clock::time_point begin = Clock::now();
  {
    const Region outer("test::outer");
    wait(0.02);
    {
      const Region inner("test::inner");
      wait(0.01);
      launch("test::kernel");
    }
    launch("test::kernel");
  }
  const double whole = std::chrono::duration<double>(Clock::now() - begin).count();
  const Profile& profile = listener.profile();
  ASSERT_EQ(profile.size(), 3u);
  EXPECT_EQ(profile.at({SpanKind::kernel, "test::kernel", {}}).calls, 2u);
  EXPECT_GE(profile.at({SpanKind::section, "test::inner", {}}).seconds, 0.01);
  EXPECT_GE(profile.at({SpanKind::section, "test::outer", {}}).seconds, 0.02);
  double sum = 0.0;
  for (const auto& [span, totals] : profile) sum += totals.seconds;
  EXPECT_GE(sum, 0.03);
  EXPECT_LE(sum, whole);
}

TEST(StepProfile, WhatIsOutsideOfSpansIsNotCounted) {
  StepProfile listener;
  wait(0.01);
  launch("test::kernel");
  ASSERT_EQ(listener.profile().size(), 1u);
}

TEST(StepProfile, KernelsOfOursWithinAProductAreToldApart) {
  StepProfile listener;
  const ExecutionSpace space;
  for (const std::string& provider : gemm_providers()) {
    const Matrix<float> x("test::x", 5, 3), w("test::w", 4, 3), y("test::y", 5, 4), pre("test::pre", 5, 4);
    const Gemm gemm(provider);
    gemm.operator()<float, float>(space, Transpose::no, x, Transpose::yes, w, 0.0f, y,
                                  {EpilogueKind::bias_gelu, Vector<float>("test::bias", 4), pre});
    const std::string name = "mylos::gemm NT 5 4 3 float float bias_gelu = " + provider;
    EXPECT_EQ(listener.profile().at({SpanKind::product, name, {}}).calls, 1u);
    std::size_t within = 0;
    for (const auto& [span, totals] : listener.profile()) {
      EXPECT_FALSE(span.name.starts_with("KokkosBlas"));
      if (span.product == name) within += totals.calls;
    }
    EXPECT_EQ(within, 1u);  // gelu, or bias and gelu together
  }
}

TEST(StepProfile, CopiesKnowTheirBytes) {
  const Vector<float> a("mylos::test::a", 100), b("mylos::test::b", 100);
  const HostVector<float> host("mylos::test::host", 100);
  StepProfile listener;
  const ExecutionSpace space;
  Kokkos::deep_copy(space, a, 1.0f);
  Kokkos::deep_copy(space, b, 0.0f);
  Kokkos::deep_copy(space, host, a);
  space.fence("mylos::test::wait");
  ASSERT_EQ(listener.profile().size(), 2u);
  EXPECT_EQ(listener.profile().at({SpanKind::copy, "fill of mylos::test", {}}).work->bytes, 800.0);
  EXPECT_EQ(listener.profile().at({SpanKind::copy, "copy to mylos::test", {}}).work->bytes, 800.0);
}

TEST(StepProfile, WorkIsThatOfAllCallsAndOfNoneThatDidNotReport) {
  StepProfile listener;
  for (int i = 0; i < 3; ++i) launch_reporting("test::reporting");
  launch("test::silent");
  launch_reporting("test::both");
  launch("test::both");
  with_work("test::never launched", work_of_kernel);
  launch("test::another");
  const auto work = [&](const char* label) { return listener.profile().at({SpanKind::kernel, label, {}}).work; };
  EXPECT_EQ(work("test::reporting"), (Work{9.0, 15.0}));
  EXPECT_FALSE(work("test::silent"));
  EXPECT_FALSE(work("test::both"));
  EXPECT_FALSE(work("test::another"));
}

TEST(StepProfile, ProductsAndTheKernelsWithinThemHaveTheirOwnWork) {
  StepProfile listener;
  const Matrix<bfloat16> x("test::x", 5, 3), w("test::w", 4, 3), y("test::y", 5, 4);
  const std::string provider = gemm_providers().front();
  Gemm(provider).operator()<bfloat16, bfloat16>(ExecutionSpace(), Transpose::no, x, Transpose::yes, w, 0.0f, y,
                                                {EpilogueKind::bias, Vector<bfloat16>("test::bias", 4), {}});
  const std::string name = "mylos::gemm NT 5 4 3 bfloat16 bfloat16 bias = " + provider;
  EXPECT_EQ(listener.profile().at({SpanKind::product, name, {}}).work, (Work{2.0 * 60, 2.0 * (15 + 12 + 20)}));
  const SpanTotals& conversions = listener.profile().at({SpanKind::kernel, "mylos::activation::convert", name});
  EXPECT_EQ(conversions.calls, 3u);
  EXPECT_EQ(conversions.work, (Work{0.0, 6.0 * (15 + 12 + 20)}));
  EXPECT_EQ(listener.profile().at({SpanKind::kernel, "mylos::activation::add_bias", name}).work, (Work{20.0, 80.0}));
}

/// Neither the profile nor Kokkos, because a tool listens, waits for a launch.
TEST(StepProfile, NothingWaitsForLaunches) {
  static int fences = 0;
  fences = 0;
  {
    const StepProfile listener;
    Kokkos::Tools::Experimental::set_begin_fence_callback([](const char*, std::uint32_t, std::uint64_t* fence) {
      *fence = 0;
      ++fences;
    });
    const Region region("test::region");
    for (int i = 0; i < 3; ++i) launch("test::kernel");
    EXPECT_EQ(fences, 0);
    ExecutionSpace().fence("test::fence");
    EXPECT_EQ(fences, 1);
  }
}

TEST(StepProfile, WhatFollowsTheStopIsNotRecorded) {
  StepProfile first;
  launch("test::kernel");
  first.stop();
  launch("test::later");
  StepProfile second;
  launch("test::second");
  first.stop();
  launch("test::second");
  EXPECT_EQ(first.profile().size(), 1u);
  EXPECT_EQ(first.profile().at({SpanKind::kernel, "test::kernel", {}}).calls, 1u);
  ASSERT_EQ(second.profile().size(), 1u);
  EXPECT_EQ(second.profile().at({SpanKind::kernel, "test::second", {}}).calls, 2u);
}

TEST(StepProfile, TimesAreCountedOnce) {
  StepProfile listener;
  double counted = 0.0;
  for (int i = 0; i < 3; ++i) {
    const Clock::time_point begin = Clock::now();
    {
      const Region region("test::region");
      wait(0.01);
    }
    const double longest = counted + std::chrono::duration<double>(Clock::now() - begin).count();
    const double seconds = listener.profile().at({SpanKind::section, "test::region", {}}).seconds;
    EXPECT_GE(seconds, counted + 0.01);
    EXPECT_LE(seconds, longest);
    EXPECT_EQ(listener.profile().at({SpanKind::section, "test::region", {}}).seconds, seconds);
    counted = seconds;
  }
}

TEST(StepProfile, OneListensAtATimeAndGivesBackWhatWasThere) {
  static int kernels = 0;
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(
      [](const char*, std::uint32_t, std::uint64_t*) { ++kernels; });
  {
    StepProfile listener;
    launch("test::kernel");
    EXPECT_NE(tests::error_of([] { const StepProfile second; }).find("another profile is active"), std::string::npos);
  }
  EXPECT_EQ(kernels, 0);
  launch("test::kernel");
  EXPECT_EQ(kernels, 1);
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(nullptr);
}

}  // namespace
}  // namespace mylos::app
