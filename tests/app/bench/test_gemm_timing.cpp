#include "app/bench/gemm_timing.hpp"
#include "core/base/median.hpp"

#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

namespace mylos::app {
namespace {

data::BertConfig model() {
  data::BertConfig config;
  config.num_hidden_layers = 3;
  config.hidden_size = 4;
  config.intermediate_size = 16;
  return config;
}

TEST(GemmTiming, ATrainingPassHasThreeProductsForEachLinearLayer) {
  const std::vector<Product> products = model_products(model(), 10, Precision::bfloat16);
  ASSERT_EQ(products.size(), 15u);
  double flops = 0.0;
  for (const Product& product : products) flops += product.calls * product.flops();
  // Three directions of 4 H^2 + 2 H F weights a layer and 2 H of the head, two operations each, for every token.
  EXPECT_EQ(flops, 3.0 * 2.0 * 10.0 * (3.0 * (4.0 * 4.0 * 4.0 + 2.0 * 4.0 * 16.0) + 2.0 * 4.0));
  EXPECT_EQ(products[2].name, "qkv/weight-gradient");
  EXPECT_EQ(products[2].output, Precision::float32);
  EXPECT_EQ(products[1].output, Precision::bfloat16);
  EXPECT_EQ(products[12].name, "head/forward");
  EXPECT_EQ(products[12].output, Precision::float32);
}

TEST(GemmTiming, AProductIsNamedWhateverTheTokens) {
  for (const std::size_t tokens : {1, 4, 7}) {
    for (const Product& product : model_products(model(), tokens, Precision::float32)) {
      const GemmLabel label{.transpose_a = product.transpose_a,
                            .transpose_b = product.transpose_b,
                            .m = product.m,
                            .n = product.n,
                            .k = product.k,
                            .provider = ""};
      EXPECT_EQ(product_name(model(), label), product.name);
    }
  }
  EXPECT_EQ(product_name(model(), {.m = 3, .n = 5, .k = 7, .provider = ""}), "3 x 5 x 7");
}

TEST(GemmTiming, EveryProviderIsTimedOnEveryProduct) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    ProductTimer timer(gemm_providers());
    std::vector<ProductRates> all;
    for (const Product& product : model_products(model(), 5, precision)) {
      ProductRates& rates = all.emplace_back();
      timer.time(product, 2, rates);
      timer.time(product, 1, rates);
      ASSERT_EQ(rates.rates.size(), timer.providers().size());
      for (const auto& timings : rates.rates) EXPECT_EQ(timings.size(), 3u);
    }
    EXPECT_GT(ceiling_rate(all), 0.0);
  }
}

TEST(GemmTiming, TheCeilingTakesTheFastestProviderOfEachProduct) {
  // Of 2 operations each: the first product runs at 1 or 4 a second, the second, twice, at 2 or 1.
  const Product product{.name = "p", .m = 1, .n = 1, .k = 1, .calls = 1.0};
  ProductRates first{product, {{1.0}, {9.0, 4.0, 3.0}}}, second{product, {{2.0}, {1.0}}};
  second.product.calls = 2.0;
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
