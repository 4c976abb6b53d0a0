#include "core/kernels/pixels.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

MYLOS_TEST_OF_ELEMENTS(Pixels, AreNormalizedByChannel) {
  const PixelNormalization normalization{3, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < 3 * 5000; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 7));
  const Matrix<T> y("test::y", 5000, 3);
  normalize_pixels<T>({}, normalization, device_integers(bytes), y);
  Values expected;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const double value = static_cast<double>(bytes[i]) / 255.0;
    expected.push_back((value - static_cast<double>(normalization.mean[i % 3])) /
                       static_cast<double>(normalization.deviation[i % 3]));
  }
  expect_near(host_values(y), expected, rounding<T> + 5e-7, "y");
}

TEST(PixelsErrors, ShowBothSides) {
  const Vector<std::uint8_t> bytes("test::bytes", 6);
  EXPECT_THAT(error_of([&] {
                normalize_pixels<float>({}, {3, {}, {}}, bytes, Matrix<float>("test::y", 3, 2));
              }),
              HasSubstr("pixels: 6 bytes of 3 channels become 3 x 2"));
}

}  // namespace
}  // namespace mylos
