#include "app/bench/kernel_work.hpp"

#include <gtest/gtest.h>

namespace mylos::app {
namespace {

data::BertConfig tiny_bert() {
  data::BertConfig config;
  config.num_hidden_layers = 2;
  config.hidden_size = 8;
  config.num_attention_heads = 4;
  config.intermediate_size = 16;
  return config;
}

/// Two sequences of 3 and 5 tokens.
StepShape shape(Precision precision) {
  return {.micro_batches = 1,
          .tokens = 8,
          .squared_lengths = 34,
          .distinct_tokens = 6,
          .distinct_positions = 5,
          .distinct_segments = 2,
          .parameters = 1000,
          .precision = precision};
}

Work work(const char* label, Precision precision = Precision::float32, double calls = 2.0) {
  return kernel_work(label, calls, tiny_bert(), shape(precision)).value();
}

TEST(KernelWork, AttentionCountsItsProductsAndScores) {
  // 2 layers: products of (length x D) and (D x length) over 4 heads of 2, and 20 or 21 operations a score.
  EXPECT_EQ(work("mylos::Attention::forward").flops, 2 * (4.0 * 8 * 34 + 20.0 * 4 * 34));
  EXPECT_EQ(work("mylos::Attention::forward").bytes, 2 * (4.0 * 8 * 8 * 4 + 4.0 * 8 * 4));
  EXPECT_EQ(work("mylos::Attention::forward", Precision::bfloat16).bytes, 2 * (4.0 * 8 * 8 * 2 + 4.0 * 8 * 4));
  EXPECT_EQ(work("mylos::Attention::backward").flops, 2 * (10.0 * 8 * 34 + 21.0 * 4 * 34));
}

TEST(KernelWork, IsThatOfAllCalls) {
  const char* const norm = "mylos::layer_norm::bias_dropout_residual";
  EXPECT_EQ(work(norm, Precision::float32, 4.0).flops, 4 * 11.0 * 8 * 8);
  // Two micro-batches of half the tokens each.
  StepShape halves = shape(Precision::float32);
  halves.micro_batches = 2.0;
  EXPECT_EQ(kernel_work(norm, 8.0, tiny_bert(), halves)->flops, work(norm, Precision::float32, 4.0).flops);
  // The update is not part of any micro-batch.
  EXPECT_EQ(kernel_work("mylos::optimizer::adamw", 8.0, tiny_bert(), halves)->flops, 15.0 * 1000);
}

TEST(KernelWork, TheUpdateMovesMastersInEveryPrecision) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    EXPECT_EQ(work("mylos::optimizer::adamw", precision).bytes, 28.0 * 1000);
    EXPECT_EQ(work("mylos::optimizer::sgd", precision).bytes, 20.0 * 1000);
    EXPECT_EQ(work("mylos::optimizer::squared_sums", precision).flops, 2.0 * 1000);
  }
}

TEST(KernelWork, ValuesAreConvertedIn16BitsOnly) {
  EXPECT_EQ(work("mylos::activation::convert").bytes, 2 * 8.0);
  EXPECT_EQ(work("mylos::activation::convert", Precision::bfloat16).bytes, 1002 * 6.0);
}

TEST(KernelWork, AnUnknownKernelHasNone) {
  EXPECT_FALSE(kernel_work("mylos::theirs", 1.0, tiny_bert(), shape(Precision::float32)));
  EXPECT_FALSE(kernel_work_within({.m = 1, .n = 1, .k = 1, .provider = ""}, "mylos::theirs"));
}

TEST(KernelWork, AProductsOwnIsThatOfItsThreeMatrices) {
  GemmLabel product{.m = 3, .n = 5, .k = 7, .input = Precision::bfloat16, .output = Precision::float32, .provider = ""};
  EXPECT_EQ(product_work(product).flops, 2.0 * 3 * 5 * 7);
  EXPECT_EQ(product_work(product).bytes, (21.0 + 35.0) * 2 + 15.0 * 4);
  product.accumulates = true;
  EXPECT_EQ(product_work(product).bytes, (21.0 + 35.0) * 2 + 15.0 * 8);
}

TEST(KernelWork, KernelsWithinAProductHaveItsShape) {
  GemmLabel product{
      .m = 3, .n = 5, .k = 7, .input = Precision::bfloat16, .output = Precision::bfloat16, .provider = ""};
  // Both operands are widened, and the result is narrowed unless it is added to.
  EXPECT_EQ(kernel_work_within(product, "mylos::activation::convert")->bytes, (21.0 + 35.0 + 15.0) * 6);
  product.accumulates = true;
  EXPECT_EQ(kernel_work_within(product, "mylos::activation::convert")->bytes, (21.0 + 35.0) * 6);
  EXPECT_EQ(kernel_work_within(product, "mylos::gemm::accumulate")->bytes, 15.0 * (4 + 2 * 2));
  EXPECT_EQ(kernel_work_within(product, "mylos::activation::add_bias")->bytes, 15.0 * 4);
  EXPECT_EQ(kernel_work_within(product, "mylos::activation::bias_gelu")->bytes, 15.0 * 6);
  EXPECT_EQ(kernel_work_within(product, "mylos::activation::gelu")->bytes, 15.0 * 4);
  EXPECT_EQ(kernel_work_within(product, "mylos::activation::gelu_gradient")->bytes, 15.0 * 6);
}

}  // namespace
}  // namespace mylos::app
