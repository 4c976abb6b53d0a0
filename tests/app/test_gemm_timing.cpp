#include "app/gemm_timing.hpp"

#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

namespace mylos::app {
namespace {

TEST(GemmTiming, ALayerHasTwelveProducts) {
  const std::vector<Product> products = layer_products(10, 4, 16);
  ASSERT_EQ(products.size(), 12u);
  double flops = 0.0;
  for (const Product& product : products) flops += product.flops();
  // Three directions of 4 H^2 + 2 H F weights, two operations each, for every token.
  EXPECT_EQ(flops, 3.0 * 2.0 * 10.0 * (4.0 * 4.0 * 4.0 + 2.0 * 4.0 * 16.0));
  EXPECT_EQ(products[2].name, "qkv/weight-gradient");
  EXPECT_TRUE(products[2].is_weight_gradient);
}

TEST(GemmTiming, TheMedianIsTheMiddle) {
  EXPECT_EQ(median({3.0}), 3.0);
  EXPECT_EQ(median({9.0, 1.0, 5.0}), 5.0);
  EXPECT_EQ(median({4.0, 1.0, 3.0, 2.0}), 2.0);
  EXPECT_NE(tests::error_of([] { median({}); }).find("median: no values"), std::string::npos);
}

}  // namespace
}  // namespace mylos::app
