#include "core/numeric.hpp"

#include "core/device.hpp"
#include "tests/support/arrays.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace mylos {
namespace {

template <class T>
T from_bits(std::uint32_t bits) {
  T value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

/// Returns the value of a 16-bit pattern by the definition of the format, in double.
double decode(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, all_ones = (1 << exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & all_ones;
  const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  if (exponent == all_ones) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

template <class T>
struct Format;
template <>
struct Format<bfloat16> {
  static double decoded(std::uint32_t bits) { return decode(bits, 8, 7); }
};
template <>
struct Format<half> {
  static double decoded(std::uint32_t bits) { return decode(bits, 5, 10); }
};

MYLOS_TEST_OF_TYPES(Numeric, EveryPatternWidensToItsValueAndBack, bfloat16, half) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float wide = from_bits<T>(bits);
    const double expected = Format<T>::decoded(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(wide)))) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(wide), expected) << bits;
    ASSERT_EQ(std::signbit(wide), (bits & 0x8000u) != 0) << bits;
    ASSERT_EQ(T(wide).bits, bits);
  }
}

/// Between two neighbours, the nearer one is chosen; halfway, the one with an even last bit; just beyond halfway, the
/// nearer.
MYLOS_TEST_OF_TYPES(Numeric, RoundsToNearestEvenBetweenAllNeighbours, bfloat16, half) {
  for (std::uint32_t bits = 0; bits < 0x7fffu; ++bits) {
    const double low = Format<T>::decoded(bits), high = Format<T>::decoded(bits + 1);
    if (!std::isfinite(high)) continue;
    const auto middle = static_cast<float>((low + high) / 2.0);
    ASSERT_EQ(static_cast<double>(middle), (low + high) / 2.0);
    const float infinity = std::numeric_limits<float>::infinity();
    ASSERT_EQ(T(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(T(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(T(std::nextafter(middle, infinity)).bits, bits + 1);
    ASSERT_EQ(T(-middle).bits, T(middle).bits | 0x8000u);
  }
}

TEST(NumericLimits, HalfOverflowsFrom65520) {
  EXPECT_EQ(static_cast<float>(half(65504.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(half(std::nextafter(65520.0f, 0.0f))), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(half(65520.0f))));
  EXPECT_EQ(static_cast<float>(half(-1e10f)), -std::numeric_limits<float>::infinity());
}

TEST(NumericLimits, Bfloat16OverflowsHalfwayBeyondItsLargest) {
  const float largest = from_bits<bfloat16>(0x7f7f);
  const float halfway = Kokkos::bit_cast<float>(0x7f7f8000u);
  EXPECT_EQ(static_cast<float>(bfloat16(std::nextafter(halfway, 0.0f))), largest);
  EXPECT_TRUE(std::isinf(static_cast<float>(bfloat16(halfway))));
  EXPECT_TRUE(std::isinf(static_cast<float>(bfloat16(std::numeric_limits<float>::max()))));
}

TEST(NumericLimits, NanWithALowPayloadStaysNan) {
  for (const std::uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0x7fc00000u}) {
    const float nan = Kokkos::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(nan)))) << bits;
    EXPECT_TRUE(std::isnan(static_cast<float>(half(nan)))) << bits;
    EXPECT_EQ(bfloat16(nan).bits >> 15, bits >> 31);
  }
}

#if defined(MYLOS_DEVICE_BUILD)
/// For every upper half of a float, with some lower halves, a device rounds and converts back as the host does, except
/// for the bits of NaNs.
template <class T>
void compare_on_device() {
  constexpr std::size_t lower_halves = 8, patterns = lower_halves << 16;
  const Vector<T> rounded("rounded", patterns);
  const Vector<float> back("back", patterns);
  const auto pattern = KOKKOS_LAMBDA(std::size_t i) {
    const std::uint32_t lower[lower_halves] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1000, 0x0fff};
    return static_cast<std::uint32_t>(i / lower_halves) << 16 | lower[i % lower_halves];
  };
  Kokkos::parallel_for(
      "mylos::test::round", Kokkos::RangePolicy<ExecutionSpace>(0, patterns), KOKKOS_LAMBDA(std::size_t i) {
        rounded(i) = T(Kokkos::bit_cast<float>(pattern(i)));
        back(i) = static_cast<float>(rounded(i));
      });
  const auto host_rounded = Kokkos::create_mirror_view_and_copy(HostSpace(), rounded);
  const auto host_back = Kokkos::create_mirror_view_and_copy(HostSpace(), back);
  for (std::size_t i = 0; i < patterns; ++i) {
    const float value = Kokkos::bit_cast<float>(pattern(i));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(host_rounded(i))) && std::isnan(host_back(i))) << pattern(i);
      continue;
    }
    ASSERT_EQ(host_rounded(i).bits, T(value).bits) << pattern(i);
    ASSERT_EQ(host_back(i), static_cast<float>(T(value))) << pattern(i);
  }
}

TEST(Numeric, DevicesRoundAsTheHostDoes) {
  compare_on_device<bfloat16>();
  compare_on_device<half>();
}
#endif

TEST(Precision, HasANameAndASize) {
  EXPECT_EQ(to_string(Precision::float32), "float");
  EXPECT_EQ(to_string(Precision::bfloat16), "bfloat16");
  EXPECT_EQ(to_string(Precision::float16), "half");
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    EXPECT_EQ(parse_precision(to_string(precision)), precision);
  }
  EXPECT_EQ(parse_precision("Half"), std::nullopt);
  EXPECT_EQ(parse_precision(""), std::nullopt);
  EXPECT_EQ(bytes_of(Precision::float32), sizeof(float));
  EXPECT_EQ(bytes_of(Precision::bfloat16), sizeof(bfloat16));
  EXPECT_EQ(bytes_of(Precision::float16), sizeof(half));
  EXPECT_EQ(precision_of<float>, Precision::float32);
  EXPECT_EQ(precision_of<bfloat16>, Precision::bfloat16);
  EXPECT_EQ(precision_of<half>, Precision::float16);
}

}  // namespace
}  // namespace mylos
