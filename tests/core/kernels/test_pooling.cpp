#include "core/kernels/pooling.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

/// Returns the index in x of the largest element of each window, computed naively.
std::vector<std::size_t> largest_twin(const PoolingShape& shape, std::size_t images, std::size_t channels,
                                      const Values& x) {
  std::vector<std::size_t> all;
  const auto at = [](std::size_t window, std::size_t position, const PoolingShape& s, std::size_t size) {
    const std::size_t padded = window * s.stride + position;
    return padded < s.padding || padded >= size + s.padding ? std::nullopt : std::optional(padded - s.padding);
  };
  for (std::size_t i = 0; i < images * shape.out_height() * shape.out_width() * channels; ++i) {
    const std::size_t c = i % channels, pixel = i / channels, image = pixel / (shape.out_height() * shape.out_width());
    const std::size_t row = pixel / shape.out_width() % shape.out_height(), column = pixel % shape.out_width();
    std::optional<std::size_t> best;
    for (std::size_t position = 0; position < shape.kernel * shape.kernel; ++position) {
      const auto y = at(row, position / shape.kernel, shape, shape.height);
      const auto z = at(column, position % shape.kernel, shape, shape.width);
      if (!y || !z) continue;
      const std::size_t element = ((image * shape.height + *y) * shape.width + *z) * channels + c;
      if (!best || x[element] > x[*best] || (std::isnan(x[element]) && !std::isnan(x[*best]))) best = element;
    }
    all.push_back(best.value());
  }
  return all;
}

/// Calls check(shape, images, channels, name) for every size with known gradients.
template <class Check>
void for_pooling_cases(const Check& check) {
  for (const auto [kernel, stride, padding] : {std::array<unsigned, 3>{3, 2, 1},
                                               {2u, 2u, 0u},
                                               {3u, 3u, 0u},
                                               {1u, 1u, 0u},
                                               {2u, 1u, 0u},
                                               {5u, 3u, 2u},
                                               {2u, 3u, 1u}}) {
    for (const auto [height, width] : {std::array<unsigned, 2>{5, 5}, {6u, 9u}, {19u, 21u}}) {
      for (const std::size_t channels : {1u, 3u, 16u, 67u}) {
        const PoolingShape shape{height, width, kernel, stride, padding};
        check(shape, std::size_t{2}, channels,
              fmt::format("{} x {} x {}, kernel {} stride {} padding {}", height, width, channels, kernel, stride,
                          padding));
      }
    }
  }
}

MYLOS_TEST_OF_ELEMENTS(Pooling, TakesTheFirstOfTheLargestAndGivesItTheGradient) {
  for_pooling_cases([](const PoolingShape& shape, std::size_t images, std::size_t channels, const std::string& name) {
    const std::size_t pixels = images * shape.height * shape.width;
    const std::size_t pooled = images * shape.out_height() * shape.out_width();
    // Few distinct values, so that windows contain ties.
    Values x = random_values<T>(pixels * channels, 1, 4.0);
    for (double& value : x) value = std::round(value);
    const Matrix<T> y("test::y", pooled, channels), dx("test::dx", pixels, channels);
    const Matrix<std::uint8_t> taken("test::taken", pooled, channels);
    const auto device = device_matrix<T>(x, pixels, channels);
    max_pool<T>({}, shape, device, y, taken);
    const std::vector<std::size_t> largest = largest_twin(shape, images, channels, x);
    Values expected(largest.size());
    for (std::size_t i = 0; i < largest.size(); ++i) expected[i] = x[largest[i]];
    EXPECT_EQ(host_values(y), expected) << name;
    Kokkos::deep_copy(y, T(9.0f));
    max_pool<T>({}, shape, device, y, {});
    EXPECT_EQ(host_values(y), expected) << name;

    const Values dy = random_values<T>(pooled * channels, 2), also = random_values<T>(pooled * channels, 3);
    for (const bool adds : {false, true}) {
      Kokkos::deep_copy(dx, T(9.0f));
      const ConstMatrix<T> other = adds ? device_matrix<T>(also, pooled, channels) : Matrix<T>();
      max_pool_backward<T>({}, shape, taken, device_matrix<T>(dy, pooled, channels), other, dx);
      Values gradient(x.size(), 0.0);
      for (std::size_t i = 0; i < largest.size(); ++i) gradient[largest[i]] += dy[i] + (adds ? also[i] : 0.0);
      expect_near(host_values(dx), gradient, 2.0 * rounding<T> + 2e-7, name);
    }
  });
}

MYLOS_TEST_OF_ELEMENTS(Pooling, AveragesImagesBothWays) {
  for (const std::size_t pixels : {1u, 4u, 49u}) {
    for (const std::size_t channels : {1u, 3u, 67u}) {
      const std::size_t images = 3;
      const Values x = random_values<T>(images * pixels * channels, 1, 3.0),
                   dy = random_values<T>(images * channels, 2);
      const Matrix<T> y("test::y", images, channels), dx("test::dx", images * pixels, channels);
      average_pool<T>({}, device_matrix<T>(x, images * pixels, channels), y);
      average_pool_backward<T>({}, device_matrix<T>(dy, images, channels), dx);
      Values means(images * channels, 0.0), gradient(x.size());
      const double share = 1.0 / static_cast<double>(pixels);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t pooled = i / (pixels * channels) * channels + i % channels;
        means[pooled] += x[i] * share;
        gradient[i] = dy[pooled] * share;
      }
      expect_near(host_values(y), means, rounding<T> + 1e-6, "y");
      expect_near(host_values(dx), gradient, rounding<T> + 1e-7, "dx");
    }
  }
}

TEST(PoolingRange, ANanIsKeptWhereverItStands) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const PoolingShape shape{2, 2, 2, 2, 0};
  const Values x{nan, 1, 2, 3, 1, nan, 3, nan, -infinity, -infinity, -infinity, -infinity};
  const Matrix<float> y("test::y", 3, 1);
  const Matrix<std::uint8_t> taken("test::taken", 3, 1);
  max_pool<float>({}, shape, device_matrix<float>(x, 12, 1), y, taken);
  EXPECT_TRUE(std::isnan(host_values(y)[0]));
  EXPECT_TRUE(std::isnan(host_values(y)[1]));
  EXPECT_EQ(host_values(y)[2], -infinity);
  EXPECT_EQ(host_values(taken), (Values{0, 1, 0}));
}

TEST(PoolingErrors, ShowBothSides) {
  const PoolingShape shape{4, 4};
  const Matrix<float> x("test::x", 16, 2), y("test::y", 4, 2), wide("test::wide", 4, 3), short_y("test::short", 3, 2);
  const Matrix<std::uint8_t> taken("test::taken", 4, 2);
  EXPECT_THAT(error_of([&] {
                max_pool<float>({}, {4, 4, 3, 2, 3}, x, y, {});
              }),
              HasSubstr("pooling: windows of 3 x 3 with stride 2 and padding 3 over images of 4 x 4"));
  EXPECT_THAT(error_of([&] { max_pool<float>({}, shape, x, wide, {}); }),
              HasSubstr("pooling: 16 x 2 becomes 4 x 3, not 16 pixels an image 4"));
  EXPECT_THAT(error_of([&] {
                max_pool_backward<float>({}, {4, 4, 3, 1, 1}, taken, y, {}, x);
              }),
              HasSubstr("pooling: windows of 3 with stride 1 overlap further than their neighbours"));
  EXPECT_THAT(error_of([&] { max_pool_backward<float>({}, shape, taken, y, short_y, x); }),
              HasSubstr("pooling: 16 x 2 becomes 3 x 2"));
  EXPECT_THAT(error_of([&] { average_pool<float>({}, x, short_y); }), HasSubstr("average pooling: 16 x 2 and 3 x 2"));
}

}  // namespace
}  // namespace mylos
