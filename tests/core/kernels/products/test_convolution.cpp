#include "core/kernels/products/convolution.hpp"

#include "core/kernels/products/gathered_convolution.hpp"
#include "tests/core/kernels/provider_name.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/tool_callbacks.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

/// A convolution of several images with a naive implementation.
struct ConvolutionProblem {
  ConvolutionShape shape;
  std::size_t images = 1;

  std::size_t x_rows() const { return images * shape.pixels(); }
  std::size_t y_rows() const { return images * shape.out_pixels(); }
  std::string name() const {
    return fmt::format("{} images {} x {} x {} to {}, {} x {}, stride {}, padding {}", images, shape.height,
                       shape.width, shape.in, shape.out, shape.kernel_height, shape.kernel_width, shape.stride,
                       shape.padding);
  }

  /// Calls use(y, x, weight) with the indices of all elements that are multiplied.
  template <class Use>
  void for_each_product(const Use& use) const {
    for (std::size_t row = 0; row < y_rows(); ++row) {
      const std::size_t image = row / shape.out_pixels(), r = row % shape.out_pixels() / shape.out_width(),
                        c = row % shape.out_width();
      for (std::size_t tap = 0; tap < shape.kernel_height * shape.kernel_width; ++tap) {
        const std::size_t h = r * shape.stride + tap / shape.kernel_width - shape.padding,
                          w = c * shape.stride + tap % shape.kernel_width - shape.padding;
        if (h >= shape.height || w >= shape.width) continue;
        const std::size_t from = image * shape.pixels() + h * shape.width + w;
        for (std::size_t o = 0; o < shape.out; ++o) {
          for (std::size_t i = 0; i < shape.in; ++i) {
            use(row * shape.out + o, from * shape.in + i, o * shape.terms() + tap * shape.in + i);
          }
        }
      }
    }
  }

  Values forward(const Values& x, const Values& weight) const {
    Values y(y_rows() * shape.out, 0.0);
    for_each_product([&](std::size_t o, std::size_t i, std::size_t w) { y[o] += x[i] * weight[w]; });
    return y;
  }
  Values input_gradient(const Values& dy, const Values& weight) const {
    Values dx(x_rows() * shape.in, 0.0);
    for_each_product([&](std::size_t o, std::size_t i, std::size_t w) { dx[i] += dy[o] * weight[w]; });
    return dx;
  }
  Values weight_gradient(const Values& x, const Values& dy) const {
    Values dweight(shape.out * shape.terms(), 0.0);
    for_each_product([&](std::size_t o, std::size_t i, std::size_t w) { dweight[w] += x[i] * dy[o]; });
    return dweight;
  }
};

/// Only float takes part in the larger ones, whose naive results take most of the time.
std::vector<ConvolutionProblem> convolution_problems(bool with_large_ones) {
  std::vector<ConvolutionProblem> problems = {
      {{5, 5, 1, 1, 1, 1}, 1},
      {{7, 9, 3, 8, 3, 3, 1, 1}, 2},
      {{9, 7, 8, 16, 3, 3, 2, 1}, 3},
      {{8, 8, 16, 8, 1, 1, 2, 0}, 2},
      {{6, 5, 17, 16, 1, 1, 1, 0}, 5},
      {{17, 13, 3, 16, 7, 7, 2, 3}, 2},
      {{6, 11, 16, 17, 5, 5, 1, 2}, 2},
      {{11, 6, 1, 3, 5, 3, 2, 3}, 4},   // padding beyond the reach of the kernel
      {{4, 4, 64, 64, 3, 3, 1, 1}, 5},  // some images share a block
      {{3, 3, 8, 17, 3, 3, 1, 0}, 3},   // one pixel left
      {{2, 9, 3, 8, 1, 5, 3, 2}, 2},    // a stride larger than the kernel, and than the height
      {{5, 4, 16, 3, 7, 7, 1, 3}, 1},   // a kernel larger than the image
      {{9, 6, 8, 17, 3, 3, 1, 2}, 3},   // tiles that lie partly outside of the
                                        // result
      {{5, 8, 16, 8, 3, 3, 1, 3}, 2},   // and tiles that read only padding
      {{1, 4, 257, 9, 3, 3, 1, 1}, 2},  // more channels than are transformed at once
      {{4, 3, 9, 257, 3, 3, 1, 1}, 2},
  };
  if (!with_large_ones) return problems;
  problems.push_back({{56, 56, 64, 17, 3, 3, 1, 1}, 1});
  problems.push_back({{97, 96, 8, 8, 3, 3, 1, 1}, 8});  // more tiles than two blocks have
  return problems;
}

/// The tolerance: one rounding of the result, plus float sums of this many terms of order 1.
template <class T>
double tolerance(double terms) {
  return 4.0 * rounding<T> + 4e-6 * std::sqrt(terms);
}

template <class T>
struct ConvolutionArrays {
  Values x, weight, dy;
  Matrix<T> x_, weight_, dy_;

  explicit ConvolutionArrays(const ConvolutionProblem& problem)
      : x(random_values<T>(problem.x_rows() * problem.shape.in, 1)),
        weight(random_values<T>(problem.shape.out * problem.shape.terms(), 2)),
        dy(random_values<T>(problem.y_rows() * problem.shape.out, 3)),
        x_(device_matrix<T>(x, problem.x_rows(), problem.shape.in)),
        weight_(device_matrix<T>(weight, problem.shape.out, problem.shape.terms())),
        dy_(device_matrix<T>(dy, problem.y_rows(), problem.shape.out)) {}
};

/// An array that must be overwritten completely.
template <class T>
Matrix<T> unwritten(std::size_t rows, std::size_t columns) {
  const Matrix<T> matrix("test::unwritten", rows, columns);
  Kokkos::deep_copy(matrix, T(std::numeric_limits<float>::quiet_NaN()));
  return matrix;
}

template <class T>
void check_passes(const std::string& provider) {
  const ExecutionSpace space;
  const Gemm gemm(provider);
  for (const ConvolutionProblem& problem : convolution_problems(std::is_same_v<T, float>)) {
    const ConvolutionShape& shape = problem.shape;
    const std::string what = provider + ": " + problem.name();
    const ConvolutionArrays<T> arrays(problem);
    const auto y = unwritten<T>(problem.y_rows(), shape.out), dx = unwritten<T>(problem.x_rows(), shape.in);
    convolve<T>(space, gemm, shape, arrays.x_, arrays.weight_, y);
    expect_near(host_values(y), problem.forward(arrays.x, arrays.weight),
                tolerance<T>(static_cast<double>(shape.terms())), what + " forward");
    convolve_input_gradient<T>(space, gemm, shape, arrays.dy_, arrays.weight_, dx);
    expect_near(host_values(dx), problem.input_gradient(arrays.dy, arrays.weight),
                tolerance<T>(static_cast<double>(shape.kernel_height * shape.kernel_width * shape.out)),
                what + " input gradient");
    Values expected = problem.weight_gradient(arrays.x, arrays.dy);
    const auto dweight = unwritten<float>(shape.out, shape.terms());
    for (const float beta : {0.0f, 1.0f}) {
      convolve_weight_gradient<T>(space, gemm, shape, arrays.x_, arrays.dy_, beta, dweight);
      if (beta == 1.0f) std::ranges::transform(expected, expected.begin(), [](double one) { return 2.0 * one; });
      expect_near(host_values(dweight), expected, tolerance<float>(static_cast<double>(problem.y_rows())),
                  fmt::format("{} weight gradient, beta {}", what, beta));
    }
  }
}

class Convolutions : public ::testing::TestWithParam<std::string> {};

TEST_P(Convolutions, OfFloat) { check_passes<float>(GetParam()); }
TEST_P(Convolutions, OfBfloat16) { check_passes<bfloat16>(GetParam()); }
TEST_P(Convolutions, OfHalf) { check_passes<half>(GetParam()); }

double dot(const Values& a, const Values& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Checks that dy . y = dx . x = dweight . weight.
template <class T>
void check_adjoint(const std::string& provider, const ConvolutionProblem& problem) {
  const ExecutionSpace space;
  const Gemm gemm(provider);
  const ConvolutionShape& shape = problem.shape;
  const ConvolutionArrays<T> arrays(problem);
  const auto y = unwritten<T>(problem.y_rows(), shape.out), dx = unwritten<T>(problem.x_rows(), shape.in);
  const auto dweight = unwritten<float>(shape.out, shape.terms());
  convolve<T>(space, gemm, shape, arrays.x_, arrays.weight_, y);
  convolve_input_gradient<T>(space, gemm, shape, arrays.dy_, arrays.weight_, dx);
  convolve_weight_gradient<T>(space, gemm, shape, arrays.x_, arrays.dy_, 0.0f, dweight);
  const double by_y = dot(host_values(y), arrays.dy);
  const double bound = 1e-5 * std::sqrt(dot(host_values(y), host_values(y)) * dot(arrays.dy, arrays.dy));
  EXPECT_NEAR(by_y, dot(host_values(dx), arrays.x), bound) << problem.name();
  EXPECT_NEAR(by_y, dot(host_values(dweight), arrays.weight), bound) << problem.name();
}

TEST_P(Convolutions, GradientsAreAdjointOverManyBlocks) {
  check_adjoint<float>(GetParam(), {{30, 30, 64, 16, 3, 3, 1, 1}, 9});
  check_adjoint<float>(GetParam(), {{61, 60, 8, 64, 3, 3, 2, 1}, 9});
  check_adjoint<float>(GetParam(), {{64, 64, 64, 8, 3, 3, 1, 1}, 2});
  check_adjoint<float>(GetParam(), {{61, 60, 3, 64, 7, 7, 2, 3}, 9});
}

/// For 16-bit types, some images at a time are widened.
TEST_P(Convolutions, GradientsAreAdjointOverManyImagesOfHalf) {
  check_adjoint<half>(GetParam(), {{64, 64, 32, 32, 1, 1, 1, 0}, 21});
}

void check_bits_of_two_calls(const std::string& provider, const ConvolutionProblem& problem) {
  const ExecutionSpace space;
  const Gemm gemm(provider);
  const ConvolutionArrays<float> arrays(problem);
  const auto y = unwritten<float>(problem.y_rows(), 64), dx = unwritten<float>(problem.x_rows(), 64),
             dweight = unwritten<float>(64, problem.shape.terms());
  const auto again_y = unwritten<float>(problem.y_rows(), 64), again_dx = unwritten<float>(problem.x_rows(), 64),
             again_dweight = unwritten<float>(64, problem.shape.terms());
  for (const auto& [to, to_x, to_weight] : {std::tuple{y, dx, dweight}, std::tuple{again_y, again_dx, again_dweight}}) {
    convolve<float>(space, gemm, problem.shape, arrays.x_, arrays.weight_, to);
    convolve_input_gradient<float>(space, gemm, problem.shape, arrays.dy_, arrays.weight_, to_x);
    convolve_weight_gradient<float>(space, gemm, problem.shape, arrays.x_, arrays.dy_, 0.0f, to_weight);
  }
  EXPECT_TRUE(same_bits(y, again_y));
  EXPECT_TRUE(same_bits(dx, again_dx));
  EXPECT_TRUE(same_bits(dweight, again_dweight));
}

TEST_P(Convolutions, GiveTheSameBitsTwice) {
  for (const std::size_t stride : {1u, 2u}) {
    check_bits_of_two_calls(GetParam(), {{13, 13, 64, 64, 3, 3, stride, 1}, 5});
  }
}

template <class T>
void check_allocations(const std::string& provider, const ConvolutionProblem& problem) {
  const ExecutionSpace space;
  const Gemm gemm(provider);
  const ConvolutionArrays<T> arrays(problem);
  const Matrix<T> y("test::y", problem.y_rows(), 32), dx("test::dx", problem.x_rows(), 32);
  const Matrix<float> dweight("test::dweight", 32, problem.shape.terms());
  const auto pass = [&](std::size_t images) {
    const auto part = [&](const Matrix<T>& all) {
      return Matrix<T>(all.data(), all.extent(0) / problem.images * images, all.extent(1));
    };
    convolve<T>(space, gemm, problem.shape, part(arrays.x_), arrays.weight_, part(y));
    convolve_input_gradient<T>(space, gemm, problem.shape, part(arrays.dy_), arrays.weight_, part(dx));
    convolve_weight_gradient<T>(space, gemm, problem.shape, part(arrays.x_), part(arrays.dy_), 1.0f, dweight);
  };
  pass(8);
  const KokkosRecorder recorder;
  for (const std::size_t images : {7u, 1u, 8u, 3u}) pass(images);
  EXPECT_TRUE(recorder.allocations().empty()) << recorder.allocations().front().label;
}

TEST_P(Convolutions, AllocateNothingForFewerImagesOnceWarm) {
  for (const std::size_t stride : {1u, 2u}) {
    check_allocations<float>(GetParam(), {{14, 14, 32, 32, 3, 3, stride, 1}, 8});
    check_allocations<float>(GetParam(), {{48, 48, 32, 32, 3, 3, stride, 1}, 8});
    check_allocations<bfloat16>(GetParam(), {{14, 14, 32, 32, 3, 3, stride, 1}, 8});
  }
}

INSTANTIATE_TEST_SUITE_P(Gemm, Convolutions, ::testing::ValuesIn(exact_gemm_providers()), provider_name);

TEST(Convolution, AnImageOfABlockOrMoreHasTheSameBitsWhateverOthersThereAre) {
  const ExecutionSpace space;
  const Gemm gemm("kokkos-kernels");
  const ConvolutionProblem three{{64, 64, 64, 64, 3, 3, 1, 1}, 3};
  const ConvolutionArrays<float> arrays(three);
  const auto y = unwritten<float>(three.y_rows(), 64), dx = unwritten<float>(three.x_rows(), 64);
  convolve<float>(space, gemm, three.shape, arrays.x_, arrays.weight_, y);
  convolve_input_gradient<float>(space, gemm, three.shape, arrays.dy_, arrays.weight_, dx);
  const std::size_t pixels = three.shape.pixels();
  const auto last = [&](const Matrix<float>& all) {
    return Matrix<float>(all.data() + 2 * pixels * all.extent(1), pixels, all.extent(1));
  };
  const auto alone_y = unwritten<float>(pixels, 64), alone_dx = unwritten<float>(pixels, 64);
  convolve<float>(space, gemm, three.shape, last(arrays.x_), arrays.weight_, alone_y);
  convolve_input_gradient<float>(space, gemm, three.shape, last(arrays.dy_), arrays.weight_, alone_dx);
  EXPECT_TRUE(same_bits(alone_y, last(y)));
  EXPECT_TRUE(same_bits(alone_dx, last(dx)));
}

/// The first convolution of a ResNet. Its rows have 147 terms. Without padding, most of them are not aligned to 16
/// bytes.
TEST(GatheredConvolution, PadsTheRowsOfThreeChannelsOnADeviceAlone) {
  const ConvolutionProblem problem{{14, 14, 3, 8, 7, 7, 2, 3}, 2};
  const ConvolutionArrays<bfloat16> arrays(problem);
  const auto padded = [](bool on_host) { return on_host ? std::size_t{147} : std::size_t{152}; };
  const Matrix<bfloat16> y("test::y", problem.y_rows(), 8);
  const Matrix<float> dweight("test::dweight", 8, 147);
  GatheredConvolution convolution;
  for (const ConvolutionPass pass : {ConvolutionPass::forward, ConvolutionPass::weight_gradient}) {
    const bool is_forward = pass == ConvolutionPass::forward;
    const GemmProduct product = convolution_product({problem.shape, pass}, problem.images, Precision::bfloat16);
    GemmCall call = call_of(product);
    call.a = is_forward ? arrays.x_.data() : arrays.dy_.data();
    call.b = is_forward ? arrays.weight_.data() : arrays.x_.data();
    call.c = is_forward ? static_cast<void*>(y.data()) : dweight.data();
    convolution.compute({}, call, [&](const GemmCall& multiplied) {
      EXPECT_EQ(is_forward ? multiplied.k : multiplied.n, padded(!kernels_in_teams));
    });
    for (const bool on_host : {!kernels_in_teams, false}) {
      const std::size_t rows = problem.y_rows() * 2, copy = on_host ? 0 : 8 * (is_forward ? 2 : 4);
      EXPECT_EQ(GatheredConvolution::bytes({&product, 1}, on_host), (rows + copy) * padded(on_host));
    }
  }
}

void check_no_images(std::size_t in, std::size_t out) {
  const ExecutionSpace space;
  const Gemm gemm(default_gemm_provider());
  const ConvolutionShape shape{4, 4, in, out, 3, 3, 1, 1};
  const Matrix<float> none_x("test::x", 0, in), none_y("test::y", 0, out), weight("test::weight", out, 9 * in);
  convolve<float>(space, gemm, shape, none_x, weight, none_y);
  convolve_input_gradient<float>(space, gemm, shape, none_y, weight, none_x);
  Kokkos::deep_copy(weight, 7.0f);
  convolve_weight_gradient<float>(space, gemm, shape, none_x, none_y, 1.0f, weight);
  EXPECT_EQ(host_values(weight), Values(9 * in * out, 7.0));
  convolve_weight_gradient<float>(space, gemm, shape, none_x, none_y, 0.0f, weight);
  EXPECT_EQ(host_values(weight), Values(9 * in * out, 0.0));
}

TEST(Convolution, OfNoImagesWritesWhatItShould) {
  check_no_images(2, 3);
  check_no_images(8, 16);
}

TEST(Convolution, ErrorsShowTheSizes) {
  const auto error = [](const ConvolutionShape& shape, std::size_t x_rows, std::size_t weight_columns,
                        std::size_t y_rows) {
    const Matrix<float> x("test::x", x_rows, 2), weight("test::weight", 3, weight_columns), y("test::y", y_rows, 3);
    return error_of([&] { convolve<float>(ExecutionSpace(), Gemm("kokkos-kernels"), shape, x, weight, y); });
  };
  const ConvolutionShape shape{4, 4, 2, 3, 3, 3, 1, 1};
  EXPECT_EQ(error(shape, 32, 18, 32), "(nothing was thrown)");
  EXPECT_THAT(error(shape, 32, 18, 16),
              HasSubstr("convolution: 3 x 3 kernels of 4 x 4 x 2 to 3 channels, stride 1, padding 1: 32 x 2 with "
                        "3 x 18 does not give 16 x 3"));
  EXPECT_THAT(error(shape, 32, 17, 32), HasSubstr("32 x 2 with 3 x 17 does not give 32 x 3"));
  EXPECT_THAT(error(shape, 33, 18, 33), HasSubstr("33 x 2 with 3 x 18 does not give 33 x 3"));
  EXPECT_THAT(error({2, 4, 2, 3, 5, 3, 1, 1}, 8, 30, 8), HasSubstr("no kernel fits"));
  const Matrix<float> x("test::x", 16, 2), dweight("test::dweight", 3, 18), dy("test::dy", 16, 3);
  EXPECT_THAT(error_of([&] {
                convolve_weight_gradient<float>(ExecutionSpace(), Gemm("kokkos-kernels"), shape, x, dy, 0.5f, dweight);
              }),
              HasSubstr("convolution with beta 0.5"));
}

}  // namespace
}  // namespace mylos
