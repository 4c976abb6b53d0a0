// Compares the products and operations that BERT reports with those recorded during a pass.

#include "families/bert/bert_model.hpp"
#include "tests/families/bert/bert_twin.hpp"
#include "tests/nn/profiled_pass.hpp"

#include <gtest/gtest.h>

namespace mylos::families {
namespace {

using namespace tests;

/// Sizes for which no two products have the same weights.
constexpr BertShape sizes{
    .vocabulary = 37, .hidden = 60, .layers = 3, .heads = 3, .feed_forward = 100, .positions = 19, .token_types = 2};

/// Returns the operations of a training pass over sequences of 11 tokens.
ProfiledPass profile(const nn::Model& model, Precision precision, nn::Recompute recompute) {
  return profile_pass(model, TwinBatch(sizes, {11, 11, 11}), precision, recompute, gemm_providers().front());
}

TEST(BertWork, OperationsAreThoseOfTheProductsOfAPass) {
  const auto model = make_bert_question_answering(sizes, Precision::float32);
  const double pairs = 3.0 * 11 * 11, layers = 3.0, hidden = 60.0;
  const double scores = 4.0 * hidden * pairs;  // for a layer's forward pass: two products of heads
  for (const nn::Recompute recompute : {nn::Recompute::none, nn::Recompute::attention, nn::Recompute::layer}) {
    const ProfiledPass profiled = profile(*model, Precision::float32, recompute);
    // A backward pass recomputes the scores; the model counts only the four other products.
    const double passes = layers * 3.0 + (recompute == nn::Recompute::layer ? layers - 1.0 : 0.0);
    EXPECT_DOUBLE_EQ(model->training_flops(profiled.shape, recompute), profiled.product_flops + passes * scores)
        << to_string(recompute);
  }
}

TEST(BertWork, OperationsAreGivenByUnit) {
  const auto model = make_bert_question_answering(sizes, Precision::float32);
  const BatchShape shape{.samples = 3, .rows = 33, .longest = 11};
  const double layer = 6.0 * 33 * (4.0 * 60 * 60 + 2.0 * 60 * 100 + 2.0 * 60 * 11), qkv = 2.0 * 33 * 3 * 60 * 60;
  const double head = 6.0 * 33 * 2 * 60;
  EXPECT_EQ(model->unit_flops(shape, nn::Recompute::none), (std::vector<double>{0.0, layer, layer, layer, head}));
  EXPECT_EQ(model->unit_flops(shape, nn::Recompute::attention),
            (std::vector<double>{0.0, layer + qkv, layer + qkv, layer, head}));
  EXPECT_EQ(model->unit_flops(shape, nn::Recompute::layer),
            (std::vector<double>{0.0, layer / 3.0 * 4.0, layer / 3.0 * 4.0, layer, head}));
  EXPECT_EQ(model->training_flops(shape), 3.0 * layer + head);
}

TEST(BertWork, ListsTheProductsOfAPass) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    const auto model = make_bert_question_answering(sizes, precision);
    auto names = expect_listed_products(*model, profile(*model, precision, nn::Recompute::none));
    EXPECT_EQ(names.size(), 15u);
    EXPECT_EQ(names["qkv/weight-gradient"], 3u);
    EXPECT_EQ(names["intermediate/input-gradient"], 3u);
    EXPECT_EQ(names["head/forward"], 1u);
  }
}

TEST(BertWork, KernelsReportTheWorkOfAllTheirCalls) {
  const auto model = make_bert_question_answering(sizes, Precision::bfloat16);
  const ProfiledPass profiled = profile(*model, Precision::bfloat16, nn::Recompute::none);
  const double tokens = 33.0 * 60;  // elements of an array (T, H); sums are over all calls of the pass
  EXPECT_EQ(profiled.kernels.at("mylos::layer_norm::bias_dropout_residual").flops, 6 * 11.0 * tokens);
  EXPECT_EQ(profiled.kernels.at("mylos::layer_norm::dropout").flops, 9.0 * tokens);
  EXPECT_EQ(profiled.kernels.at("mylos::Attention::forward").flops, 3 * 363.0 * (4.0 * 60 + 3 * 20.0));
  EXPECT_EQ(profiled.kernels.at("mylos::Attention::backward").flops, 3 * 363.0 * (10.0 * 60 + 3 * 21.0));
  EXPECT_EQ(profiled.kernels.at("mylos::embedding::lookup").flops, 2.0 * tokens);
  EXPECT_EQ(profiled.kernels.at("mylos::embedding::gradient").flops, 3.0 * tokens);
  EXPECT_EQ(profiled.kernels.at("mylos::cross_entropy::span").bytes, 66.0 * (4 + 2));
}

}  // namespace
}  // namespace mylos::families
