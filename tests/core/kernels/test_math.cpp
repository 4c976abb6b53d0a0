#include "core/kernels/math.hpp"

#include "tests/support/worst.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace mylos {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Returns |got - expected| in units in the last place of `expected` rounded to float.
double ulps(float got, double expected) {
  const float nearest = std::fabs(static_cast<float>(expected));
  return std::fabs(got - expected) / (static_cast<double>(std::nextafter(nearest, infinity)) - nearest);
}

/// Calls check(x) for every 257th float except NaN and infinity.
template <class Check>
void for_finite_floats(Check check) {
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 257) {
    const float x = Kokkos::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isfinite(x)) check(x);
  }
}

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normal_density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi); }

TEST(Math, ExpIsWithinTwoUlpsWhereItDoesNotUnderflow) {
  double worst = 0.0;
  for_finite_floats([&](float x) {
    if (x >= -87.33f && x <= 88.72283f) worst = tests::worse_of(worst, ulps(exp_approximate(x), std::exp(double{x})));
  });
  EXPECT_LE(worst, 2.0);
  EXPECT_GT(worst, 0.1);  // otherwise nothing was measured
}

TEST(Math, ExpAtItsEnds) {
  EXPECT_EQ(exp_approximate(0.0f), 1.0f);
  EXPECT_EQ(exp_approximate(-88.0f), 0.0f);
  EXPECT_EQ(exp_approximate(-infinity), 0.0f);
  EXPECT_EQ(exp_approximate(std::numeric_limits<float>::lowest()), 0.0f);
  EXPECT_TRUE(std::isfinite(exp_approximate(88.72283f)));
  EXPECT_EQ(exp_approximate(88.73f), infinity);
  EXPECT_EQ(exp_approximate(infinity), infinity);
  EXPECT_TRUE(std::isnan(exp_approximate(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(exp_approximate(Kokkos::bit_cast<float>(0xff800001u))));
}

TEST(Math, PowerOfTwoIsWithinItsBoundWhereItDoesNotUnderflow) {
  double worst = 0.0;
  for_finite_floats([&](float x) {
    if (x >= -126.0f && x <= 0.0f) worst = tests::worse_of(worst, ulps(exp2_approximate(x), std::exp2(double{x})));
  });
  EXPECT_LE(worst, 1.25);
  EXPECT_GT(worst, 0.1);  // otherwise nothing was measured
}

TEST(Math, PowerOfTwoAtItsEnds) {
  EXPECT_EQ(exp2_approximate(0.0f), 1.0f);
  EXPECT_EQ(exp2_approximate(-1.0f), 0.5f);
  EXPECT_EQ(exp2_approximate(-126.0f), 0x1p-126f);
  EXPECT_EQ(exp2_approximate(-126.5f), 0.0f);
  EXPECT_EQ(exp2_approximate(-infinity), 0.0f);
  EXPECT_EQ(exp2_approximate(std::numeric_limits<float>::lowest()), 0.0f);
  EXPECT_TRUE(std::isnan(exp2_approximate(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(exp2_approximate(Kokkos::bit_cast<float>(0xff800001u))));
}

TEST(Math, GeluAndItsDerivativeEqualTheExactOnes) {
  for (float x = -12.0f; x <= 12.0f; x += 0.00037f) {
    const double distribution = normal_distribution(x);
    ASSERT_NEAR(gelu(x), x * distribution, 2e-7 * std::max(1.0, std::fabs(double{x}))) << "x = " << x;
    ASSERT_NEAR(gelu_derivative(x), distribution + x * normal_density(x), 3e-7) << "x = " << x;
  }
  EXPECT_EQ(gelu(1e30f), 1e30f);
  EXPECT_EQ(gelu_derivative(1e30f), 1.0f);
  EXPECT_EQ(gelu_derivative(-1e30f), 0.0f);
  EXPECT_EQ(gelu(-1e30f), 0.0f);
  EXPECT_TRUE(std::isnan(gelu(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(gelu_derivative(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace mylos
