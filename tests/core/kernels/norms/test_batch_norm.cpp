#include "core/kernels/norms/batch_norm.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

constexpr float norm_epsilon = 1e-5f;

enum class Behind { nothing, relu, plain_sum, normalized_sum };

/// Groups of the given numbers of images, with their arrays in double.
struct NormTwin {
  std::vector<std::size_t> sizes;
  std::size_t pixels, channels;
  Values x, weight, bias, residual, residual_weight, residual_bias, dy, also;

  template <class T>
  static NormTwin random(std::vector<std::size_t> sizes, std::size_t pixels, std::size_t channels) {
    const std::size_t images = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    const std::size_t all = images * pixels * channels;
    return {std::move(sizes),
            pixels,
            channels,
            random_values<T>(all, 1, 2.0),
            random_values<T>(channels, 2),
            random_values<T>(channels, 3),
            random_values<T>(all, 4, 2.0),
            random_values<T>(channels, 5),
            random_values<T>(channels, 6),
            random_values<T>(all, 7),
            random_values<T>(all, 8)};
  }
  std::size_t rows() const { return x.size() / channels; }
  std::size_t images() const { return rows() / pixels; }
  std::vector<std::size_t> starts() const {
    std::vector<std::size_t> all{0};
    for (const std::size_t size : sizes) all.push_back(all.back() + size);
    return all;
  }
  std::vector<std::uint32_t> of_images() const {
    std::vector<std::uint32_t> all;
    for (std::size_t group = 0; group < sizes.size(); ++group) all.insert(all.end(), sizes[group], group);
    return all;
  }
  double count(std::size_t group) const { return static_cast<double>(sizes[group] * pixels); }

  /// Returns means and biased variances (S, C) of an array.
  std::pair<Values, Values> statistics(const Values& array) const {
    Values mean(sizes.size() * channels, 0.0), variance = mean;
    const std::vector<std::uint32_t> group = of_images();
    const auto position = [&](std::size_t i) { return group[i / (pixels * channels)] * channels + i % channels; };
    for (std::size_t i = 0; i < array.size(); ++i) mean[position(i)] += array[i] / count(position(i) / channels);
    for (std::size_t i = 0; i < array.size(); ++i) {
      variance[position(i)] += std::pow(array[i] - mean[position(i)], 2) / count(position(i) / channels);
    }
    return {mean, variance};
  }
  Values inverse(const Values& array) const {
    Values all = statistics(array).second;
    for (double& value : all) value = 1.0 / std::sqrt(value + static_cast<double>(norm_epsilon));
    return all;
  }
  /// Returns (x - mean) inverse for each element.
  Values normalized(const Values& array) const {
    const auto [mean, variance] = statistics(array);
    const Values factor = inverse(array);
    const std::vector<std::uint32_t> group = of_images();
    Values all(array.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t position = group[i / (pixels * channels)] * channels + i % channels;
      all[i] = (array[i] - mean[position]) * factor[position];
    }
    return all;
  }
  /// Returns the input of the ReLU.
  Values sum(Behind behind) const {
    Values all = normalized(x);
    const Values other = behind == Behind::normalized_sum ? normalized(residual) : residual;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t c = i % channels;
      all[i] = all[i] * weight[c] + bias[c];
      if (behind == Behind::plain_sum) all[i] += other[i];
      if (behind == Behind::normalized_sum) all[i] += other[i] * residual_weight[c] + residual_bias[c];
    }
    return all;
  }
  Values y(Behind behind) const {
    Values all = sum(behind);
    if (behind == Behind::nothing) return all;
    for (double& value : all) value = std::max(value, 0.0);
    return all;
  }
  double loss(Behind behind, bool adds) const {
    const Values all = y(behind);
    double total = 0.0;
    for (std::size_t i = 0; i < all.size(); ++i) total += all[i] * (dy[i] + (adds ? also[i] : 0.0));
    return total;
  }
  /// Returns the gradient of the ReLU's input.
  Values dsum(Behind behind, bool adds) const {
    Values all = sum(behind);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool passes = behind == Behind::nothing || all[i] > 0.0;
      all[i] = passes ? dy[i] + (adds ? also[i] : 0.0) : 0.0;
    }
    return all;
  }
};

struct NormGradientTwin {
  Values dx, dweight, dbias;

  NormGradientTwin(const NormTwin& twin, const Values& g) : dx(g.size()), dweight(twin.channels), dbias(twin.channels) {
    const Values normal = twin.normalized(twin.x), factor = twin.inverse(twin.x);
    const std::vector<std::uint32_t> group = twin.of_images();
    Values sums(factor.size(), 0.0), products = sums;
    const auto position = [&](std::size_t i) {
      return group[i / (twin.pixels * twin.channels)] * twin.channels + i % twin.channels;
    };
    for (std::size_t i = 0; i < g.size(); ++i) {
      sums[position(i)] += g[i];
      products[position(i)] += g[i] * normal[i];
      dbias[i % twin.channels] += g[i];
      dweight[i % twin.channels] += g[i] * normal[i];
    }
    for (std::size_t i = 0; i < g.size(); ++i) {
      const double count = twin.count(position(i) / twin.channels);
      dx[i] = twin.weight[i % twin.channels] * factor[position(i)] *
              (g[i] - sums[position(i)] / count - normal[i] * products[position(i)] / count);
    }
  }
};

template <class T>
struct NormDevice {
  ImageGroups groups;
  BatchNormInput<T> input, shortcut;
  Matrix<T> residual, y, dy, also, dx;
  BatchNormGradients gradients;
  Matrix<float> observed;
  Vector<float> workspace;

  explicit NormDevice(const NormTwin& twin)
      : groups{device_integers(twin.starts()), device_integers(twin.of_images()), twin.pixels},
        input{matrix(twin, twin.x), statistics(twin), device_vector<T>(twin.weight), device_vector<T>(twin.bias)},
        shortcut{matrix(twin, twin.residual), statistics(twin), device_vector<T>(twin.residual_weight),
                 device_vector<T>(twin.residual_bias)},
        residual(matrix(twin, twin.residual)),
        y("test::y", twin.rows(), twin.channels),
        dy(matrix(twin, twin.dy)),
        also(matrix(twin, twin.also)),
        dx("test::dx", twin.rows(), twin.channels),
        gradients{Vector<float>("test::dweight", twin.channels), Vector<float>("test::dbias", twin.channels)},
        observed("test::observed", twin.sizes.size(), 2 * twin.channels + 3),
        workspace("test::workspace",
                  batch_norm_workspace(twin.sizes.size(), twin.images(), twin.pixels, twin.channels)) {}

  static Matrix<T> matrix(const NormTwin& twin, const Values& values) {
    return device_matrix<T>(values, twin.rows(), twin.channels);
  }
  static BatchNormStatistics statistics(const NormTwin& twin) {
    return {Matrix<float>("test::mean", twin.sizes.size(), twin.channels),
            Matrix<float>("test::inverse", twin.sizes.size(), twin.channels)};
  }
  void take_statistics(const ExecutionSpace& space = {}) {
    batch_norm_statistics<T>(space, groups, input.x, norm_epsilon, input.statistics, {observed, 1, y.extent(1) + 2},
                             workspace);
    batch_norm_statistics<T>(space, groups, shortcut.x, norm_epsilon, shortcut.statistics, {}, workspace);
  }
  void forward(Behind behind, const ExecutionSpace& space = {}) {
    if (behind == Behind::relu) batch_norm_relu<T>(space, groups, input, y);
    if (behind == Behind::plain_sum) batch_norm_residual_relu<T>(space, groups, input, residual, y);
    if (behind == Behind::normalized_sum) batch_norm_shortcut_relu<T>(space, groups, input, shortcut, y);
  }
  void backward(Behind behind, bool adds, const ExecutionSpace& space = {}) {
    const ConstMatrix<T> other = adds ? also : Matrix<T>();
    if (behind == Behind::nothing) {
      batch_norm_backward<T>(space, groups, input, dy, dx, gradients, workspace);
    } else if (behind == Behind::relu) {
      batch_norm_relu_backward<T>(space, groups, input, dy, other, dx, gradients, workspace);
    } else {
      batch_norm_sum_relu_backward<T>(space, groups, input, y, dy, other, dx, gradients, workspace);
    }
  }
};

/// Returns a copy that does not begin at a multiple of 16 bytes. `memory` becomes its owner.
template <class T>
Matrix<T> misaligned(const ConstMatrix<T>& array, std::vector<Vector<T>>& memory) {
  memory.emplace_back("test::misaligned", array.size() + 1);
  const Matrix<T> copy(memory.back().data() + 1, array.extent(0), array.extent(1));
  Kokkos::deep_copy(copy, array);
  return copy;
}

/// Calls check(twin, name) for a group of one image, several groups of different sizes, and images of several blocks.
template <class T, class Check>
void for_norm_cases(const Check& check) {
  const auto run = [&](std::vector<std::size_t> sizes, std::size_t pixels, std::size_t channels) {
    check(NormTwin::random<T>(sizes, pixels, channels),
          fmt::format("{} groups of {} pixels and {} channels", sizes.size(), pixels, channels));
  };
  run({3}, 1, 5);
  run({1}, 9, 1);
  run({2, 1, 3}, 35, 16);
  run({2, 3}, 49, 67);
  run({1, 2}, 2500, 19);
  run({1, 1}, 70, 1030);
  // On a device, threads share the rows of a chunk of channels, unevenly, or have several chunks each.
  run({1, 2}, 300, 72);
  run({1, 1}, 40, 2080);
}

/// Compares means, and inverse deviations relative to the twin's.
template <class T>
void expect_statistics(const NormDevice<T>& device, const NormTwin& twin, double of_mean, double of_inverse,
                       const std::string& name) {
  expect_near(host_values(device.input.statistics.mean), twin.statistics(twin.x).first, of_mean, name + " mean");
  Values relative = host_values(device.input.statistics.inverse);
  const Values inverse = twin.inverse(twin.x);
  for (std::size_t i = 0; i < relative.size(); ++i) relative[i] /= inverse[i];
  expect_near(relative, Values(relative.size(), 1.0), of_inverse, name + " inverse");
}

MYLOS_TEST_OF_ELEMENTS(BatchNorm, TakesAndReportsTheStatisticsOfGroups) {
  for_norm_cases<T>([](const NormTwin& twin, const std::string& name) {
    NormDevice<T> device(twin);
    device.take_statistics();
    expect_statistics(device, twin, 1e-6, 1e-6, name);
    const auto [mean, variance] = twin.statistics(twin.x);
    const Values observed = host_values(device.observed);
    const std::size_t width = 2 * twin.channels + 3;
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const std::size_t group = i / twin.channels, c = i % twin.channels;
      const double count = twin.count(group);
      ASSERT_NEAR(observed[group * width + 1 + c], mean[i], 1e-6) << name;
      ASSERT_NEAR(observed[group * width + twin.channels + 2 + c], variance[i] * count / std::max(count - 1.0, 1.0),
                  4e-6 * (1.0 + variance[i]))
          << name;
      EXPECT_EQ(observed[group * width], 0.0);
      EXPECT_EQ(observed[group * width + twin.channels + 1], 0.0);
      EXPECT_EQ(observed[(group + 1) * width - 1], 0.0);
    }
  });
}

/// Deviations are 1e-4 of the mean, so that sums of squares would lose all digits.
TEST(BatchNormRange, ALargeMeanCostsNoDigits) {
  NormTwin twin = NormTwin::random<float>({2, 3}, 3000, 7);
  for (double& value : twin.x) value = static_cast<double>(static_cast<float>(1000.0 + 0.1 * value));
  NormDevice<float> device(twin);
  device.take_statistics();
  device.forward(Behind::relu);
  expect_statistics(device, twin, 4e-8, 2e-6, "large mean");
  // Half the distance between neighbouring numbers near 1000, in units of the deviation.
  expect_near(host_values(device.y), twin.y(Behind::relu), 3.1e-5 / 0.1, "y");
}

/// The first row of each block is where sums begin, and the only one that differs much from the mean: 16 deviations.
TEST(BatchNormRange, AnOutlierInTheFirstRowCostsFewDigits) {
  NormTwin twin = NormTwin::random<float>({2}, 512, 64);  // blocks of 256 rows
  for (std::size_t i = 0; i < twin.x.size(); ++i) {
    const double outlier = i / 64 % 256 == 0 ? 500.0 : 1000.0 + 0.01 * twin.x[i];
    twin.x[i] = static_cast<double>(static_cast<float>(outlier));
  }
  NormDevice<float> device(twin);
  device.take_statistics();
  expect_statistics(device, twin, 4e-7, 1e-5, "outlier");
}

MYLOS_TEST_OF_ELEMENTS(BatchNorm, ForwardMatchesTheTwin) {
  for_norm_cases<T>([](const NormTwin& twin, const std::string& name) {
    NormDevice<T> device(twin);
    device.take_statistics();
    for (const Behind behind : {Behind::relu, Behind::plain_sum, Behind::normalized_sum}) {
      device.forward(behind);
      expect_near(host_values(device.y), twin.y(behind), rounding<T> + 4e-6, name);
    }
  });
}

MYLOS_TEST_OF_ELEMENTS(BatchNorm, BackwardMatchesTheTwin) {
  for_norm_cases<T>([](const NormTwin& twin, const std::string& name) {
    for (const Behind behind : {Behind::nothing, Behind::relu, Behind::plain_sum, Behind::normalized_sum}) {
      for (const bool adds : {false, true}) {
        if (adds && behind == Behind::nothing) continue;
        NormDevice<T> device(twin);
        device.take_statistics();
        device.forward(behind);
        Kokkos::deep_copy(device.gradients.dweight, 0.5f);
        device.backward(behind, adds);
        const Values g = twin.dsum(behind, adds);
        NormGradientTwin expected(twin, g);
        for (double& value : expected.dweight) value += 0.5;
        const double bound = (adds ? 3.0 : 1.0) * rounding<T>, many = std::sqrt(static_cast<double>(twin.rows()));
        const std::string what = fmt::format("{}, behind {}, adds {}", name, static_cast<int>(behind), adds);
        expect_near(host_values(device.dx), expected.dx, 2.0 * bound + 1e-5, what + " dx");
        expect_near(host_values(device.gradients.dweight), expected.dweight, bound * many + 1e-5, what + " dweight");
        expect_near(host_values(device.gradients.dbias), expected.dbias, bound * many + 1e-5, what + " dbias");
        const bool stores = behind == Behind::plain_sum || behind == Behind::normalized_sum || adds;
        expect_near(host_values(device.dy), stores ? g : twin.dy, bound, what + " dy");
      }
    }
  });
}

TEST(BatchNormJacobian, OfAllInputs) {
  for (const Behind behind : {Behind::nothing, Behind::relu, Behind::plain_sum}) {
    NormTwin twin = NormTwin::random<float>({2, 1}, 3, 4);
    NormDevice<float> device(twin);
    device.take_statistics();
    device.forward(behind);
    device.backward(behind, behind != Behind::nothing);
    const auto loss = [&] { return twin.loss(behind, behind != Behind::nothing); };
    expect_near(host_values(device.dx), numeric_gradient(twin.x, loss), 2e-5, "x");
    expect_near(host_values(device.gradients.dweight), numeric_gradient(twin.weight, loss), 2e-5, "weight");
    expect_near(host_values(device.gradients.dbias), numeric_gradient(twin.bias, loss), 2e-5, "bias");
    if (behind != Behind::plain_sum) continue;
    expect_near(host_values(device.dy), numeric_gradient(twin.residual, loss), 2e-5, "residual");
  }
}

MYLOS_TEST_OF_ELEMENTS(BatchNorm, RunningStatisticsServeAllImages) {
  const NormTwin twin = NormTwin::random<T>({2, 3}, 11, 5);
  NormDevice<T> device(twin);
  const Values mean = random_values(5, 21), variance{0.5, 0.0, 1.0, 2.0, 30.0};
  device.input.statistics = {Matrix<float>("test::mean", 1, 5), Matrix<float>("test::inverse", 1, 5)};
  running_batch_norm_statistics({}, device_vector<float>(mean), device_vector<float>(variance), norm_epsilon,
                                device.input.statistics);
  device.forward(Behind::relu);
  Values expected(twin.x.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t c = i % 5;
    const double normal = (twin.x[i] - mean[c]) / std::sqrt(variance[c] + static_cast<double>(norm_epsilon));
    expected[i] = std::max(0.0, normal * twin.weight[c] + twin.bias[c]);
  }
  expect_near(host_values(device.y), expected, rounding<T> + 1e-6, "y");
}

/// Outputs may overwrite their inputs, and gradients either of theirs.
MYLOS_TEST_OF_ELEMENTS(BatchNorm, WorksInPlace) {
  const NormTwin twin = NormTwin::random<T>({2, 1, 3}, 100, 72);
  for (const Behind behind : {Behind::relu, Behind::plain_sum, Behind::normalized_sum}) {
    NormDevice<T> apart(twin), x(twin), other(twin);
    for (NormDevice<T>* device : {&apart, &x, &other}) device->take_statistics();
    x.y = Matrix<T>(const_cast<T*>(x.input.x.data()), twin.rows(), twin.channels);
    other.residual = other.y;
    Kokkos::deep_copy(other.y, apart.residual);
    other.shortcut.x = other.y;
    for (NormDevice<T>* device : {&apart, &x, &other}) device->forward(behind);
    EXPECT_TRUE(same_bits(apart.y, x.y));
    if (behind != Behind::relu) {
      EXPECT_TRUE(same_bits(apart.y, other.y));
    }
  }
  for (const Behind behind : {Behind::nothing, Behind::relu, Behind::plain_sum, Behind::normalized_sum}) {
    for (const bool adds : {false, true}) {
      NormDevice<T> apart(twin), over_x(twin), over_dy(twin);
      for (NormDevice<T>* device : {&apart, &over_x, &over_dy}) {
        device->take_statistics();
        device->forward(behind);
      }
      over_x.dx = Matrix<T>(const_cast<T*>(over_x.input.x.data()), twin.rows(), twin.channels);
      over_dy.dx = over_dy.dy;
      for (NormDevice<T>* device : {&apart, &over_x, &over_dy}) device->backward(behind, adds);
      EXPECT_TRUE(same_bits(apart.dx, over_x.dx));
      EXPECT_TRUE(same_bits(apart.dx, over_dy.dx));
    }
  }
}

MYLOS_TEST_OF_ELEMENTS(BatchNorm, MisalignedArraysGiveTheSameBits) {
  const auto check = [](const NormTwin& twin, Behind behind, bool adds) {
    std::vector<Vector<T>> memory;
    NormDevice<T> aligned(twin), other(twin);
    other.input.x = misaligned<T>(other.input.x, memory);
    other.shortcut.x = misaligned<T>(other.shortcut.x, memory);
    for (Matrix<T>* array : {&other.residual, &other.y, &other.dy, &other.also, &other.dx}) {
      *array = misaligned<T>(*array, memory);
    }
    for (NormDevice<T>* device : {&aligned, &other}) {
      device->take_statistics();
      device->forward(behind);
      device->backward(behind, adds);
    }
    EXPECT_TRUE(same_bits(aligned.observed, other.observed));
    EXPECT_TRUE(same_bits(aligned.y, other.y));
    EXPECT_TRUE(same_bits(aligned.dy, other.dy));
    EXPECT_TRUE(same_bits(aligned.dx, other.dx));
    EXPECT_TRUE(same_bits(aligned.gradients.dweight, other.gradients.dweight));
    EXPECT_TRUE(same_bits(aligned.gradients.dbias, other.gradients.dbias));
  };
  const NormTwin twin = NormTwin::random<T>({2, 1}, 300, 72);
  for (const Behind behind : {Behind::nothing, Behind::relu, Behind::plain_sum, Behind::normalized_sum}) {
    for (const bool adds : {false, true}) check(twin, behind, adds);
  }
  check(NormTwin::random<T>({1}, 40, 1040), Behind::normalized_sum, true);
}

MYLOS_TEST_OF_ELEMENTS(BatchNorm, GivesTheSameBitsOnOneThreadAndToAGroupAlone) {
  for (const std::size_t channels : {67u, 72u}) {
    const NormTwin twin = NormTwin::random<T>({2, 3, 1}, 700, channels);
    NormTwin last = twin;
    last.sizes = {1};
    for (Values* values : {&last.x, &last.residual, &last.dy, &last.also}) {
      values->erase(values->begin(), values->end() - static_cast<std::ptrdiff_t>(700 * channels));
    }
    NormDevice<T> all(twin), one(twin), alone(last);
    const auto run = [](NormDevice<T>& device, const ExecutionSpace& space) {
      device.take_statistics(space);
      device.forward(Behind::normalized_sum, space);
      device.backward(Behind::normalized_sum, true, space);
    };
    run(all, {});
    run(one, one_thread());
    run(alone, {});
    EXPECT_TRUE(same_bits(all.y, one.y));
    EXPECT_TRUE(same_bits(all.dx, one.dx));
    EXPECT_TRUE(same_bits(all.gradients.dweight, one.gradients.dweight));
    EXPECT_TRUE(same_bits(all.observed, one.observed));
    const auto tail = [](const Matrix<T>& rows) {
      return Matrix<T>(Kokkos::subview(rows, Kokkos::make_pair(std::size_t{3500}, std::size_t{4200}), Kokkos::ALL()));
    };
    EXPECT_TRUE(same_bits(tail(all.y), alone.y));
    EXPECT_TRUE(same_bits(tail(all.dx), alone.dx));
  }
}

TEST(BatchNormErrors, ShowBothSides) {
  const auto message = [](const auto& change) {
    NormDevice<float> device(NormTwin::random<float>({2, 1}, 3, 4));
    change(device);
    return error_of([&] {
      device.take_statistics();
      device.forward(Behind::plain_sum);
      device.forward(Behind::normalized_sum);
      device.backward(Behind::plain_sum, true);
    });
  };
  const std::string images = "BatchNorm of 3 images of 3 pixels and 4 channels: ";
  EXPECT_THAT(message([](auto& d) { d.workspace = slice(d.workspace, 0, 47); }),
              HasSubstr(images + "the workspace has 47 floats, 48 are needed"));
  EXPECT_THAT(message([](auto& d) { d.residual = Matrix<float>("test::r", 8, 4); }),
              HasSubstr(images + "the residual is 8 x 4"));
  EXPECT_THAT(message([](auto& d) { d.dx = Matrix<float>("test::dx", 9, 5); }), HasSubstr(images + "dx is 9 x 5"));
  EXPECT_THAT(message([](auto& d) { d.also = Matrix<float>("test::also", 9, 3); }),
              HasSubstr(images + "the other gradient is 9 x 3"));
  EXPECT_THAT(message([](auto& d) { d.input.bias = Vector<float>("test::bias", 3); }),
              HasSubstr("BatchNorm of 4 channels: bias has 3, statistics 4 and 4"));
  EXPECT_THAT(message([](auto& d) { d.input.statistics.mean = Matrix<float>("test::mean", 3, 4); }),
              HasSubstr("BatchNorm of 2 groups and 4 channels: statistics are 3 x 4 and 2 x 4"));
  EXPECT_THAT(message([](auto& d) { d.gradients.dbias = Vector<float>("test::dbias", 3); }),
              HasSubstr("BatchNorm of 4 channels: gradients of 4 and 3"));
  NormDevice<float> device(NormTwin::random<float>({2, 1}, 3, 4));
  device.input.statistics = {Matrix<float>("test::mean", 1, 4), Matrix<float>("test::inverse", 1, 4)};
  EXPECT_THAT(error_of([&] { device.backward(Behind::relu, false); }),
              HasSubstr("BatchNorm's gradient of 2 groups: statistics of 1"));
  EXPECT_THAT(error_of([&] {
                running_batch_norm_statistics({}, device.gradients.dbias, Vector<float>("test::v", 3), 0.0f,
                                              device.input.statistics);
              }),
              HasSubstr("BatchNorm: 4 running means and 3 variances for 4 and 4"));
}

}  // namespace
}  // namespace mylos
