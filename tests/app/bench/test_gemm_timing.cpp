#include "app/bench/gemm_timing.hpp"

#include "core/base/median.hpp"
#include "families/bert/bert_model.hpp"
#include "nn/layers/convolution.hpp"
#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

namespace mylos::app {
namespace {

std::unique_ptr<nn::Model> small_bert(Precision precision) {
  return families::make_bert_question_answering(
      {.vocabulary = 9, .hidden = 4, .layers = 3, .heads = 1, .feed_forward = 16, .positions = 9, .token_types = 2},
      precision);
}

TEST(GemmTiming, ATrainingPassHasThreeProductsForEachLinearLayer) {
  const std::vector<GemmProduct> products = training_products(*small_bert(Precision::bfloat16), 10);
  ASSERT_EQ(products.size(), 15u);
  double flops = 0.0;
  for (const GemmProduct& product : products) flops += static_cast<double>(product.count) * product.flops();
  // Three passes, with 4 H^2 + 2 H F weights per layer and 2 H in the head, and two operations per weight and token.
  EXPECT_EQ(flops, 3.0 * 2.0 * 10.0 * (3.0 * (4.0 * 4.0 * 4.0 + 2.0 * 4.0 * 16.0) + 2.0 * 4.0));
  EXPECT_EQ(products[1].name, "qkv/weight-gradient");
  EXPECT_EQ(products[1].output, Precision::float32);
  EXPECT_EQ(products[2].output, Precision::bfloat16);
  EXPECT_EQ(products[12].name, "head/forward");
  EXPECT_EQ(products[12].output, Precision::float32);
}

TEST(GemmTiming, AProductIsNamedWhateverTheRows) {
  const auto model = small_bert(Precision::float32);
  const std::vector<GemmProduct> list = training_products(*model, 1);
  for (const std::size_t rows : {1, 4, 7}) {
    for (const GemmProduct& product : training_products(*model, rows)) {
      const GemmLabel label{.transpose_a = product.transpose_a,
                            .transpose_b = product.transpose_b,
                            .m = product.m,
                            .n = product.n,
                            .k = product.k,
                            .provider = ""};
      EXPECT_EQ(product_name(list, label), product.name);
    }
  }
  EXPECT_EQ(product_name(list, {.m = 3, .n = 5, .k = 7, .provider = ""}), "3 x 5 x 7");
  EXPECT_EQ(product_name({}, {.m = 3, .n = 5, .k = 7, .provider = ""}), "3 x 5 x 7");
}

TEST(GemmTiming, ShortProductsAreLaunchedManyTimesPerTiming) {
  EXPECT_EQ(launches_per_timing(1.0), 1u);
  EXPECT_EQ(launches_per_timing(2e-3), 1u);
  EXPECT_EQ(launches_per_timing(1.5e-3), 2u);
  EXPECT_EQ(launches_per_timing(1e-4), 20u);
  EXPECT_EQ(launches_per_timing(1e-9), 256u);
  EXPECT_EQ(launches_per_timing(0.0), 256u) << "a launch below the resolution of events";
}

TEST(GemmTiming, EveryProviderIsTimedOnEveryProduct) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    ProductTimer timer(gemm_providers());
    std::vector<ProductRates> all;
    for (const GemmProduct& product : training_products(*small_bert(precision), 5)) {
      ProductRates& rates = all.emplace_back();
      timer.time(product, 2, rates);
      timer.time(product, 1, rates);
      ASSERT_EQ(rates.rates.size(), timer.providers().size());
      for (const auto& timings : rates.rates) EXPECT_EQ(timings.size(), 3u);
    }
    EXPECT_GT(ceiling_rate(all), 0.0);
  }
}

TEST(GemmTiming, EveryProviderIsTimedOnEveryConvolution) {
  const ConvolutionShape shape{
      .height = 7, .width = 6, .in = 3, .out = 5, .kernel_height = 3, .kernel_width = 3, .stride = 2, .padding = 1};
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    ProductTimer timer(gemm_providers());
    const auto list = nn::convolution_products({.name = "stem", .shape = shape, .precision = precision}, 3,
                                               ParameterStore::Purpose::training);
    for (const GemmProduct& product : list) {
      ProductRates rates;
      timer.time(product, 1, rates);
      EXPECT_GT(rates.rate(rates.fastest()), 0.0);
      const auto label = parse_gemm_label(to_string(GemmLabel{.transpose_a = product.transpose_a,
                                                              .transpose_b = product.transpose_b,
                                                              .m = product.m,
                                                              .n = product.n,
                                                              .k = product.k,
                                                              .provider = "any",
                                                              .convolution = product.convolution}));
      ASSERT_TRUE(label);
      EXPECT_EQ(product_name(list, *label), product.name);
    }
  }
  EXPECT_EQ(product_name({}, {.m = 36, .n = 5, .k = 27, .convolution = Convolution{shape, ConvolutionPass::forward}}),
            "convolution 36 x 5 x 27");
}

TEST(GemmTiming, TheCeilingTakesTheFastestProviderOfEachProduct) {
  // With 2 operations each: the first product runs at 1 or 4 per second, the second, which is done twice, at 2 or 1.
  const GemmProduct product{.m = 1, .n = 1, .k = 1, .name = "p"};
  ProductRates first{product, {{1.0}, {9.0, 4.0, 3.0}}}, second{product, {{2.0}, {1.0}}};
  second.product.count = 2;
  EXPECT_EQ(first.fastest(), 1u);
  EXPECT_EQ(second.fastest(), 0u);
  EXPECT_EQ(ceiling_rate({first, second}), 6.0 / (2.0 / 4.0 + 4.0 / 2.0));
  EXPECT_EQ(combined_rate({first, second}, [](const ProductRates& each) { return each.rate(1); }),
            6.0 / (2.0 / 4.0 + 4.0 / 1.0));
}

TEST(GemmTiming, TheMedianIsTheMiddle) {
  EXPECT_EQ(median({3.0}), 3.0);
  EXPECT_EQ(median({9.0, 1.0, 5.0}), 5.0);
  EXPECT_EQ(median({4.0, 1.0, 3.0, 2.0}), 2.0);
  EXPECT_NE(tests::error_of([] { median({}); }).find("median: no values"), std::string::npos);
}

}  // namespace
}  // namespace mylos::app
