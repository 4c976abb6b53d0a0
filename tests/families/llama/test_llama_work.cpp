// Compares the products and operations that Llama reports with those recorded during a pass.

#include "families/llama/llama_model.hpp"
#include "tests/families/llama/llama_twin.hpp"
#include "tests/nn/profiled_pass.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace mylos::families {
namespace {

using namespace tests;

/// Sizes for which no two products have the same weights. A chunk of logits has 128 rows.
LlamaShape llama_sizes() {
  return {.vocabulary = 262144,
          .hidden = 6,
          .layers = 3,
          .heads = 3,
          .key_value_heads = 1,
          .head_size = 4,
          .feed_forward = 10,
          .positions = 50};
}

/// Returns the operations of a training pass over sequences of 44 tokens: a full chunk of logits and one of 4 rows.
ProfiledPass profile_llama(const nn::Model& model, Precision precision, nn::Recompute recompute) {
  return profile_pass(model, LlamaTwinBatch(llama_sizes(), {44, 44, 44}), precision, recompute,
                      gemm_providers().back());
}

TEST(LlamaWork, OperationsAreThoseOfTheProductsOfAPass) {
  const auto model = make_llama(llama_sizes(), Precision::float32);
  const double pairs = 3.0 * 44 * 45 / 2, layers = 3.0;
  const double scores = 4.0 * 12 * pairs;  // for a layer's forward pass: two products of heads
  for (const nn::Recompute recompute : {nn::Recompute::none, nn::Recompute::attention, nn::Recompute::layer}) {
    const ProfiledPass profiled = profile_llama(*model, Precision::float32, recompute);
    const double passes = layers * 3.0 + (recompute == nn::Recompute::layer ? layers - 1.0 : 0.0);
    EXPECT_DOUBLE_EQ(model->training_flops(profiled.shape, recompute), profiled.product_flops + passes * scores)
        << to_string(recompute);
  }
}

TEST(LlamaWork, AWindowLeavesOutWhatItHides) {
  LlamaShape sizes = llama_sizes();
  sizes.window = 10;
  sizes.first_windowed = 2;
  const BatchShape shape{.samples = 3, .rows = 132, .longest = 44};
  const auto all = make_llama(llama_sizes(), Precision::float32)->unit_flops(shape, nn::Recompute::none),
             windowed = make_llama(sizes, Precision::float32)->unit_flops(shape, nn::Recompute::none);
  for (const std::size_t unit : {0, 1, 2, 4}) EXPECT_EQ(windowed[unit], all[unit]) << unit;
  const double hidden_pairs =
      3.0 * (34 * 35 / 2);  // of each sequence: the first query without its first key is the 11th
  EXPECT_DOUBLE_EQ(all[3] - windowed[3], 3.0 * 4 * 12 * hidden_pairs);
}

TEST(LlamaWork, OperationsAreGivenByUnit) {
  const auto model = make_llama(llama_sizes(), Precision::float32);
  const BatchShape shape{.samples = 3, .rows = 132, .longest = 44};
  const double qkv = 6.0 * 20, down = 6.0 * 10, forward = qkv + 6.0 * 12 + 3 * down + 12.0 * 45, rows = 2.0 * 132;
  const double layer = rows * 3.0 * forward, head = rows * 3.0 * 262144 * 6;
  EXPECT_EQ(model->unit_flops(shape, nn::Recompute::none), (std::vector<double>{0.0, layer, layer, layer, head}));
  EXPECT_EQ(model->unit_flops(shape, nn::Recompute::attention),
            (std::vector<double>{0.0, layer + rows * qkv, layer + rows * qkv, layer, head}));
  const double again = rows * (forward - down);
  EXPECT_EQ(model->unit_flops(shape, nn::Recompute::layer),
            (std::vector<double>{0.0, layer + again, layer + again, layer, head}));
}

/// Adapters of layers that no other is read with: the products of a stack also multiply zeros, which do not count.
TEST(LlamaWork, OperationsOfAdaptersAreThoseOfTheirProducts) {
  const auto model = make_llama(llama_sizes(), Precision::float32);
  nn::Adapters adapters;
  for (const char* module : {"1.self_attn.o_proj", "1.mlp.down_proj", "2.mlp.down_proj"}) {
    adapters.layers.push_back({fmt::format("model.layers.{}", module), 2 + adapters.layers.size(), 1.0f});
  }
  model->adapt(adapters);
  const double pairs = 3.0 * 44 * 45 / 2, scores = 4.0 * 12 * pairs;
  const ProfiledPass profiled = profile_llama(*model, Precision::float32, nn::Recompute::none);
  const double flops = model->training_flops(profiled.shape, nn::Recompute::none);
  // Forward thrice and backward in two layers. The first of them counts its input's gradient, which nobody reads.
  EXPECT_DOUBLE_EQ(flops, profiled.product_flops + 7.0 * scores + 2.0 * 132 * 6 * 20);
}

TEST(LlamaWork, OperationsOfAdaptersAreCountedByUnit) {
  const auto model = make_llama(llama_sizes(), Precision::float32);
  const BatchShape shape{.samples = 3, .rows = 132, .longest = 44};
  const std::vector<double> whole = model->unit_flops(shape, nn::Recompute::none);
  model->adapt({.layers = {{"model.layers.1.self_attn.q_proj", 3, 1.0f}, {"model.layers.1.mlp.up_proj", 2, 1.0f}}});
  const double rows = 2.0 * 132, scores = 4.0 * 12 * 3 * 44 * 45 / 2;
  const double weights = 6.0 * (12 + 2 * 4) + 12.0 * 6 + 3 * 6.0 * 10, head = 262144.0 * 6;
  const double adapters = 3.0 * (6 + 12) + 2.0 * (6 + 10);
  const std::vector<double> adapted = model->unit_flops(shape, nn::Recompute::none);
  const std::vector<double> expected = {0.0, rows * weights + scores, rows * (2 * weights + 3 * adapters) + 3 * scores,
                                        rows * 2 * weights + 3 * scores, rows * 2 * head};
  for (std::size_t unit = 0; unit < whole.size(); ++unit) EXPECT_DOUBLE_EQ(adapted[unit], expected[unit]) << unit;
}

/// Those of weights that are frozen are listed too.
TEST(LlamaWork, ListsTheProductsOfAdapters) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    const auto model = make_llama(llama_sizes(), precision);
    const auto modules = nn::linear_modules(model->table());
    nn::Adapters adapters;
    for (std::size_t i = 0; i < modules.size(); ++i) adapters.layers.push_back({modules[i], 1 + i % 3, 1.0f});
    model->adapt(adapters);
    ProductCounts computed, listed;
    const ProfiledPass profiled = profile_llama(*model, precision, nn::Recompute::none);
    for (const GemmLabel& one : profiled.products) count_product(computed, one, 1);
    for (const GemmProduct& one : model->products(profiled.shape, ParameterStore::Purpose::training)) {
      count_product(listed, one, one.count);
    }
    for (const auto& [product, count] : computed) EXPECT_LE(count, listed[product]);
  }
}

TEST(LlamaWork, ListsTheProductsOfAPass) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    const auto model = make_llama(llama_sizes(), precision);
    const auto names = expect_listed_products(*model, profile_llama(*model, precision, nn::Recompute::none));
    EXPECT_EQ(names.size(), 18u);
    EXPECT_TRUE(names.contains("gate-up/forward") && names.contains("head/forward") &&
                names.contains("head-rest/weight-gradient"));
  }
}

TEST(LlamaWork, KernelsReportTheWorkOfAllTheirCalls) {
  const auto model = make_llama(llama_sizes(), Precision::float32);
  const ProfiledPass profiled = profile_llama(*model, Precision::float32, nn::Recompute::none);
  const double tokens = 132.0 * 6;  // elements of an array (T, H); sums are over all calls of the pass
  EXPECT_EQ(profiled.kernels.at("mylos::rms_norm::forward").flops, 4.0 * tokens) << "of the first layer alone";
  EXPECT_EQ(profiled.kernels.at("mylos::rms_norm::residual").flops, 6 * 5.0 * tokens);
  EXPECT_EQ(profiled.kernels.at("mylos::rms_norm::backward").flops, 7 * 13.0 * tokens);
  EXPECT_EQ(profiled.kernels.at("mylos::rotary::rotate").flops, 6 * 3.0 * 132 * 16);
  EXPECT_EQ(profiled.kernels.at("mylos::rotary::table").flops, 41.0 * 132 * 2);
  EXPECT_EQ(profiled.kernels.at("mylos::embedding::lookup").flops, 0.0);
}

}  // namespace
}  // namespace mylos::families
