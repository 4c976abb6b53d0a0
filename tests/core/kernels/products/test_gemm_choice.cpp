#include "core/kernels/products/gemm_choice.hpp"

#include "core/base/value_bytes.hpp"
#include "core/kernels/products/gemm_measure.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/tool_callbacks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <utility>

namespace mylos {
namespace {

using namespace tests;

/// y (T, 30) = x (T, 20) W^T, and the gradient of W.
GemmProduct forward(std::size_t rows) { return {.transpose_b = Transpose::yes, .m = rows, .n = 30, .k = 20}; }
GemmProduct weight_gradient(std::size_t rows) { return {.transpose_a = Transpose::yes, .m = 30, .n = 20, .k = rows}; }

TEST(GemmChoice, RowsCountByTheirBucket) {
  EXPECT_EQ(key_of(forward(100)), key_of(forward(127)));
  EXPECT_NE(key_of(forward(100)), key_of(forward(128)));
  EXPECT_EQ(key_of(forward(100)).rows, 64u);
  EXPECT_EQ(key_of(weight_gradient(100)).rows, 64u);
  EXPECT_EQ(key_of(weight_gradient(100)).n, 20u);
  EXPECT_EQ(key_of(weight_gradient(100)).k, 30u);
  GemmProduct other = forward(100);
  other.input = Precision::bfloat16;
  EXPECT_NE(key_of(other), key_of(forward(100)));
}

/// A 3 x 3 convolution of images of 28 x 28 x 16.
GemmProduct convolution(std::size_t images, ConvolutionPass pass = ConvolutionPass::forward) {
  const ConvolutionShape shape{
      .height = 28, .width = 28, .in = 16, .out = 8, .kernel_height = 3, .kernel_width = 3, .padding = 1};
  return convolution_product({shape, pass}, images, Precision::float32);
}

TEST(GemmChoice, AConvolutionIsAProductOfItsOwn) {
  const GemmProduct product = convolution(1);
  EXPECT_EQ(key_of(product).rows, 512u);
  EXPECT_EQ(key_of(convolution(2)).rows, 1024u);
  EXPECT_EQ(key_of(convolution(2)), key_of(convolution(600))) << "as fast for many images";
  GemmProduct few = product, fewer = product;
  few.m = 99;
  fewer.m = 50;
  EXPECT_EQ(key_of(few).rows, 64u);
  EXPECT_NE(key_of(few), key_of(fewer));
  GemmProduct plain = product, strided = product;
  plain.convolution.reset();
  strided.convolution->shape.stride = 2;
  EXPECT_NE(key_of(plain), key_of(product));
  EXPECT_NE(key_of(strided), key_of(product));
  const GemmChoice choice{"default", {{key_of(product), "its own"}}};
  EXPECT_EQ(provider_of(choice, key_of(convolution(9))), "its own");
  EXPECT_EQ(provider_of(choice, key_of(plain)), "default");
  EXPECT_EQ(provider_of(choice, key_of(strided)), "default");
}

TEST(GemmChoice, AConvolutionsSizesAreThoseOfItsImages) {
  const std::size_t x = 3 * 28 * 28 * 16, y = 3 * 28 * 28 * 8, weight = 8 * 9 * 16;
  const auto sizes = [](ConvolutionPass pass) {
    const OperandSizes of = operand_sizes(convolution(3, pass));
    return std::array{of.a, of.b, of.c};
  };
  EXPECT_EQ(sizes(ConvolutionPass::forward), (std::array{x, weight, y}));
  EXPECT_EQ(sizes(ConvolutionPass::input_gradient), (std::array{y, weight, x}));
  EXPECT_EQ(sizes(ConvolutionPass::weight_gradient), (std::array{y, x, weight}));
  for (const auto pass :
       {ConvolutionPass::forward, ConvolutionPass::input_gradient, ConvolutionPass::weight_gradient}) {
    EXPECT_EQ(convolution(3, pass).flops(), 2.0 * static_cast<double>(y) * 9 * 16);
    EXPECT_EQ(batch_extent(convolution(3, pass)), 3u);
    EXPECT_EQ(batch_extent(with_batch_extent(convolution(3, pass), 2)), 2u);
    EXPECT_EQ(batch_extent(with_batch_extent(convolution(3, pass), 5)), 3u);
  }
}

TEST(GemmChoice, TheNearestBucketOfTheSameProductDecides) {
  const GemmChoice choice{"default", {{key_of(forward(64)), "small"}, {key_of(forward(1024)), "large"}}};
  EXPECT_EQ(provider_of(choice, key_of(forward(64))), "small");
  EXPECT_EQ(provider_of(choice, key_of(forward(1))), "small");
  EXPECT_EQ(provider_of(choice, key_of(forward(128))), "small");
  EXPECT_EQ(provider_of(choice, key_of(forward(512))), "large");
  EXPECT_EQ(provider_of(choice, key_of(forward(100'000))), "large");
  EXPECT_EQ(provider_of(choice, key_of(weight_gradient(64))), "default");
  GemmProduct wider = forward(64);
  wider.n = 31;
  EXPECT_EQ(provider_of(choice, key_of(wider)), "default");
}

TEST(GemmChoice, SaysHowManyProductsAreAnothers) {
  EXPECT_EQ(describe({"a", {}}), "a");
  EXPECT_EQ(describe({"a", {{key_of(forward(1)), "a"}}}), "a");
  EXPECT_EQ(describe({"a", {{key_of(forward(1)), "a"}, {key_of(forward(2)), "b"}}}), "a, b for 1 of 2 products");
}

TEST(GemmChoice, IsTheSameOnTheRankThatReceivesIt) {
  const GemmChoice choice{"default",
                          {{key_of(forward(64)), "small"},
                           {key_of(weight_gradient(1024)), "large"},
                           {key_of(convolution(1, ConvolutionPass::weight_gradient)), ""}}};
  EXPECT_EQ(value_of_bytes<GemmChoice>(bytes_of_value(choice)), choice);
  EXPECT_EQ(value_of_bytes<GemmChoice>(bytes_of_value(GemmChoice())), GemmChoice());
}

/// A clock for providers with known seconds per operation.
class FakeTimer {
 public:
  explicit FakeTimer(std::vector<double> rates) : rates_(std::move(rates)) {}
  GemmTimer timer() {
    return [this](std::size_t provider, const GemmProduct& product) {
      const double seconds = product.flops() / rates_[provider];
      spent += seconds;
      most_rows = std::max(most_rows, product.m);
      ++calls[provider];
      return seconds;
    };
  }

  double spent = 0.0;
  std::size_t most_rows = 0;
  std::map<std::size_t, std::size_t> calls;

 private:
  std::vector<double> rates_;
};

GemmMeasurement two_providers() { return {.providers = {"first", "second"}, .fallback = "second"}; }

TEST(GemmMeasurement, TheFasterProviderIsTaken) {
  FakeTimer timer({1.1e12, 1e12});
  const GemmChoice choice = choose_gemm(two_providers(), {forward(1000)}, timer.timer());
  EXPECT_EQ(choice, (GemmChoice{"second", {{key_of(forward(1000)), "first"}}}));
  EXPECT_EQ(timer.calls[0], timer.calls[1]);
}

TEST(GemmMeasurement, TheFallbackStaysWhereTheDifferenceIsNoise) {
  FakeTimer timer({1.02e12, 1e12});
  EXPECT_EQ(choose_gemm(two_providers(), {forward(1000)}, timer.timer()).products.at(key_of(forward(1000))), "second");
}

TEST(GemmMeasurement, WhatIsFarSlowerIsTimedNoFurther) {
  FakeTimer timer({1e11, 1e12});
  EXPECT_EQ(choose_gemm(two_providers(), {forward(1000)}, timer.timer()).products.at(key_of(forward(1000))), "second");
  EXPECT_EQ(timer.calls[0], 3u);
  // The fallback is replaced only after all timings.
  FakeTimer slow_fallback({1e12, 1e11});
  EXPECT_EQ(choose_gemm(two_providers(), {forward(1000)}, slow_fallback.timer()).products.at(key_of(forward(1000))),
            "first");
  EXPECT_EQ(slow_fallback.calls[0], slow_fallback.calls[1]);
}

TEST(GemmMeasurement, TheSecondsAreKept) {
  GemmMeasurement measurement = two_providers();
  measurement.seconds = 0.1;
  const GemmProduct huge{.m = 1'000'000, .n = 4096, .k = 4096};
  std::vector<GemmProduct> products;
  for (std::size_t i = 0; i < 50; ++i) products.push_back({.m = 1'000'000, .n = 4096 + i, .k = 4096});
  FakeTimer fast({1e14, 1.1e14}), slow({1e10, 1.1e10});
  EXPECT_EQ(choose_gemm(measurement, products, fast.timer()).products.size(), 50u);
  EXPECT_LE(fast.spent, 0.1);
  EXPECT_LT(fast.most_rows, huge.m);
  // A product whose measurement started in time is decided by its first, short timing.
  EXPECT_EQ(choose_gemm(measurement, products, slow.timer()).products.size(), 1u);
  EXPECT_EQ(slow.most_rows, 256u);
}

TEST(GemmMeasurement, AConvolutionIsTimedWithWholeImages) {
  std::vector<std::size_t> images;
  const GemmTimer timer = [&](std::size_t provider, const GemmProduct& product) {
    images.push_back(batch_extent(product));
    EXPECT_EQ(product.m, images.back() * 28 * 28);
    return provider == 0 ? 1e-4 : 1.1e-4;
  };
  const GemmChoice choice = choose_gemm(two_providers(), {convolution(40)}, timer);
  EXPECT_EQ(choice.products.at(key_of(convolution(40))), "first");
  EXPECT_EQ(images.front(), 2u) << "of 784 pixels each";
  EXPECT_EQ(images.back(), 40u);
}

TEST(GemmMeasurement, WhatAPassHasMostOfComesFirst) {
  GemmMeasurement measurement = two_providers();
  measurement.seconds = 1e-9;
  GemmProduct frequent = weight_gradient(1000);
  frequent.count = 12;
  FakeTimer timer({1e12, 1e12});
  const GemmChoice choice = choose_gemm(measurement, {forward(1000), frequent}, timer.timer());
  ASSERT_EQ(choice.products.size(), 1u);
  EXPECT_EQ(choice.products.begin()->first, key_of(frequent));
}

TEST(GemmMeasurement, OneProviderNeedsNoTimings) {
  FakeTimer timer({1e12});
  EXPECT_EQ(choose_gemm({.providers = {"only"}, .fallback = "only"}, {forward(1000)}, timer.timer()),
            (GemmChoice{"only", {}}));
  EXPECT_EQ(timer.spent, 0.0);
}

TEST(GemmMeasurement, EveryProductOfThisBuildsProvidersIsTimed) {
  std::vector<GemmProduct> products;
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    for (GemmProduct product : {forward(77), weight_gradient(77)}) {
      product.input = precision;
      for (const EpilogueKind kind : {EpilogueKind::none, EpilogueKind::bias, EpilogueKind::bias_gelu}) {
        product.epilogue = kind;
        product.n += 1;
        products.push_back(product);
      }
    }
  }
  for (const auto pass :
       {ConvolutionPass::forward, ConvolutionPass::input_gradient, ConvolutionPass::weight_gradient}) {
    products.push_back(convolution(2, pass));
  }
  const GemmMeasurement measurement{exact_gemm_providers(), default_gemm_provider(), 30.0};
  const KokkosRecorder recorder;
  const GemmChoice choice = measure_gemm(ExecutionSpace(), measurement, products);
  EXPECT_EQ(choice.fallback, default_gemm_provider());
  EXPECT_EQ(choice.products.size(), exact_gemm_providers().size() > 1 ? products.size() : 0u);
  EXPECT_TRUE(recorder.foreign_launches().empty());
}

TEST(GemmChoice, EachProductGoesToItsProvider) {
  const std::vector<std::string> providers = gemm_providers();
  const ExecutionSpace space;
  const Values x = random_values(100 * 20, 1), w = random_values(30 * 20, 2);
  const auto a = device_matrix<bfloat16>(x, 100, 20), b = device_matrix<bfloat16>(w, 30, 20);
  const Matrix<bfloat16> c("test::c", 100, 30), expected("test::expected", 100, 30);
  const auto multiply = [&](const Gemm& gemm, const Matrix<bfloat16>& result) {
    gemm.operator()<bfloat16, bfloat16>(space, Transpose::no, a, Transpose::yes, b, 0.0f, result);
  };
  GemmProduct product = forward(100);
  product.input = product.output = Precision::bfloat16;
  for (const std::string& chosen : providers) {
    for (const std::string& fallback : providers) {
      multiply(Gemm(GemmChoice{fallback, {{key_of(product), chosen}}}), c);
      multiply(Gemm(chosen), expected);
      EXPECT_TRUE(same_bits(c, expected)) << chosen << " beside " << fallback;
    }
  }
}

}  // namespace
}  // namespace mylos
