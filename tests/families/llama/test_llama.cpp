// Compares the whole model, at odd sizes, with the double-precision reference: grouped queries, head sizes other than
// hidden / heads, tied and untied heads, and every scaling of rotary embeddings.

#include "families/llama/llama_model.hpp"

#include "core/kernels/norms/layer_norm.hpp"
#include "tests/families/llama/llama_logits.hpp"
#include "tests/families/llama/llama_twin.hpp"
#include "tests/nn/model_setting.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace mylos::families {
namespace {

using namespace tests;
using ::testing::HasSubstr;

/// 4 query heads of size 6 use 2 key and value heads; their 24 columns differ from the model's 20.
LlamaShape grouped_llama(std::size_t layers = 2) {
  return {.vocabulary = 37,
          .hidden = 20,
          .layers = layers,
          .heads = 4,
          .key_value_heads = 2,
          .head_size = 6,
          .feed_forward = 28,
          .positions = 19,
          .rope_theta = 50.0,
          .rms_norm_epsilon = 1e-5f,
          .initializer_range = 0.2f};
}

/// A tied head, one key/value head for all, and wavelengths of 6 to 290 tokens: short, intermediate and long.
LlamaShape tied_llama() {
  LlamaShape shape = grouped_llama();
  shape.key_value_heads = 1;
  shape.head_size = 12;
  shape.tied = true;
  shape.rope_theta = 100.0;
  shape.rope_scaling = {RotaryScaling::Kind::llama3, 8.0, 1.0, 4.0, 40};
  return shape;
}

LlamaShape linear_llama() {
  LlamaShape shape = grouped_llama(1);
  shape.key_value_heads = 4;
  shape.head_size = 2;
  shape.rope_scaling = {.kind = RotaryScaling::Kind::linear, .factor = 2.5};
  return shape;
}

/// In heads of 24, pairs 0 and 1 keep their frequencies, and pairs from 5 on are slowed down in full.
LlamaShape yarn_llama() {
  LlamaShape shape = grouped_llama(1);
  shape.head_size = 24;
  shape.rope_theta = 100.0;
  shape.rope_scaling = {
      .kind = RotaryScaling::Kind::yarn, .factor = 4.0, .original_positions = 64, .fast = 6.0, .slow = 1.5};
  return shape;
}

/// Norms of heads, biases everywhere, and a window in the second layer.
LlamaShape windowed_llama() {
  LlamaShape shape = grouped_llama();
  shape.qkv_bias = shape.output_bias = shape.mlp_bias = shape.head_norms = true;
  shape.window = 5;
  shape.first_windowed = 1;
  return shape;
}

struct LlamaCase {
  std::string name;
  LlamaShape shape;
};
std::vector<LlamaCase> llamas() {
  return {{"grouped", grouped_llama()},
          {"tied", tied_llama()},
          {"linear", linear_llama()},
          {"yarn", yarn_llama()},
          {"windowed", windowed_llama()}};
}

const std::vector<std::size_t> some_lengths{1, 19, 2, 7};
constexpr std::array llama_recomputations = {nn::Recompute::none, nn::Recompute::attention, nn::Recompute::layer};

struct LlamaSetting : ModelSetting<nn::Model, LlamaTwinBatch> {
  explicit LlamaSetting(const LlamaShape& of, const std::string& provider = gemm_providers().front(),
                        nn::Recompute recomputed = nn::Recompute::none, Precision precision = Precision::float32)
      : ModelSetting(make_llama(of, precision), LlamaTwinBatch(of, some_lengths), provider, recomputed, precision),
        shape(of) {}
  Values logits() {
    Batch batch;
    data.fill(0, data.lengths.size(), batch);
    return host_values(make_llama_logits(shape, engine->store.precision())->predict(engine->pass(), batch, {}));
  }

  LlamaShape shape;
};

TEST(LlamaModel, LossesAndEveryGradientMatchTheTwin) {
  for (const auto& [llama, shape] : llamas()) {
    for (const std::string& provider : exact_gemm_providers()) {
      SCOPED_TRACE(llama + " " + provider);
      LlamaSetting s(shape, provider);
      LlamaTwin twin(shape, *s.engine, s.data);
      expect_losses_and_gradients(s, twin, 4e-6);
    }
  }
}

TEST(LlamaModel, FrozenTensorsHaveNoGradients) {
  for (const auto& [llama, shape] : llamas()) {
    for (const nn::Recompute recompute : llama_recomputations) {
      SCOPED_TRACE(llama);
      const auto make = [&] { return LlamaSetting(shape, gemm_providers().front(), recompute); };
      for (const std::vector<std::string>& patterns : {std::vector<std::string>{"embeddings"},
                                                       {"layers.0"},
                                                       {"*q_proj*"},
                                                       {"*norm*"},
                                                       {"embeddings", "layers.0"},
                                                       {"embeddings", "layers.0", "*o_proj*"}}) {
        expect_frozen(make(), make(), patterns);
      }
      if (shape.qkv_bias) expect_frozen(make(), make(), {"*bias*"});
      if (shape.tied) continue;  // its head has no tensors of its own
      expect_frozen(make(), make(), {"body"});
      expect_frozen(make(), make(), {"embeddings", "layers"});
      expect_frozen(make(), make(), {"head"});
    }
  }
}

TEST(LlamaModel, AdaptersHaveTheGradientsThatFollowFromMergedWeights) {
  for (const auto& [llama, shape] : llamas()) {
    for (const nn::Recompute recompute : llama_recomputations) {
      for (const std::vector<std::string>& ends :
           {std::vector<std::string>{"proj"}, {"q_proj", "v_proj"}, {"1.self_attn.k_proj", "1.mlp.up_proj"}}) {
        SCOPED_TRACE(fmt::format("{} {} {}", llama, to_string(recompute), fmt::join(ends, ",")));
        const auto make = [&] { return LlamaSetting(shape, gemm_providers().front(), recompute); };
        nn::Adapters adapters = adapters_of(*make().model, ends);
        if (adapters.empty()) continue;  // of a model with one layer
        expect_adapted(make, adapters);
        adapters.trained = {shape.tied ? "model.norm" : "lm_head", "model.layers.1.self_attn.o_proj"};
        expect_adapted(make, adapters);
      }
    }
  }
}

LlamaSetting adapted_llama(const std::string& provider, nn::Recompute recompute, Precision precision) {
  LlamaSetting s(grouped_llama(3), provider, recompute, precision);
  s.adapt(adapters_of(*s.model, {"proj"}, 0.3f));
  return s;
}

TEST(LlamaModel, AdaptersDropTheSameElementsInAnyPackingAndWhenRecomputed) {
  expect_recomputation_changes_no_bit(adapted_llama);
  expect_same_in_micro_batches(
      [] { return adapted_llama(gemm_providers().front(), nn::Recompute::none, Precision::float32); }, {1, 3});
  LlamaSetting kept = adapted_llama(gemm_providers().front(), nn::Recompute::none, Precision::float32);
  LlamaSetting dropped = adapted_llama(gemm_providers().front(), nn::Recompute::none, Precision::float32);
  kept.engine->step = dropped.engine->step + 1;
  EXPECT_NE(kept.train(4, 0.5f), dropped.train(4, 0.5f)) << "another step";
  EXPECT_EQ(kept.predict(4), dropped.predict(4));
}

TEST(LlamaModel, PredictionGivesTheLikeliestTokensAndLosses) {
  for (const auto& [llama, shape] : llamas()) {
    SCOPED_TRACE(llama);
    LlamaSetting s(shape, gemm_providers().back());
    const LlamaTwin twin(shape, *s.engine, s.data);
    const Values logits = twin.logits();
    expect_near(s.logits(), logits, 2e-5, "logits");
    Batch batch;
    s.data.fill(0, s.data.lengths.size(), batch);
    const Vector<float> losses("test::losses", s.data.lengths.size());
    const Matrix<float> outputs = s.model->predict(s.engine->pass(), batch, losses);
    EXPECT_EQ(outputs.extent(1), 1u);
    const Values likeliest = host_values(outputs);
    for (std::size_t row = 0; row < s.data.rows(); ++row) {
      const auto first = logits.begin() + static_cast<std::ptrdiff_t>(row * shape.vocabulary);
      const auto largest = std::max_element(first, first + static_cast<std::ptrdiff_t>(shape.vocabulary)) - first;
      EXPECT_EQ(likeliest[row], static_cast<double>(largest)) << "row " << row;
    }
    expect_near(host_values(losses), twin.losses(), 2e-5, "losses");
    expect_near(host_values(s.model->predict(s.engine->pass(), batch, {})), likeliest, 0.0, "without losses");
  }
}

TEST(LlamaModel, MicroBatchesGiveTheSameLossesAndGradients) {
  expect_same_in_micro_batches([] { return LlamaSetting(tied_llama()); }, {1, 3});
}

TEST(LlamaModel, TheGradientOfATiedHeadIsAddedToThatOfTheEmbeddings) {
  LlamaSetting s(tied_llama());
  EXPECT_EQ(s.model->table().units().back().borrowed, std::vector<std::size_t>{0});
  s.train(4, 1.0f);
  // Tokens that do not occur get a gradient only from the head, and the others from both.
  const Values gradient = s.engine->gradient(s.model->table().find("model.embed_tokens.weight"));
  for (std::size_t token = 0; token < s.shape.vocabulary; ++token) {
    const auto first = gradient.begin() + static_cast<std::ptrdiff_t>(token * s.shape.hidden);
    EXPECT_GT(largest_of(Values(first, first + static_cast<std::ptrdiff_t>(s.shape.hidden))), 0.0) << token;
  }
}

TEST(LlamaModel, ThePaddingTokensEmbeddingGetsNoGradient) {
  LlamaShape shape = grouped_llama();
  LlamaSetting all(shape);
  shape.padding_token = all.data.tokens[3];
  LlamaSetting padded(shape);
  all.train(4, 1.0f), padded.train(4, 1.0f);
  const Values expected = all.engine->gradient(0), actual = padded.engine->gradient(0);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool is_padding = static_cast<std::int32_t>(i / shape.hidden) == shape.padding_token;
    ASSERT_EQ(actual[i], is_padding ? 0.0 : expected[i]) << "element " << i;
    if (is_padding) {
      EXPECT_NE(expected[i], 0.0);
    }
  }
}

TEST(LlamaModel, TellsTheScheduleEachUnitInBothDirections) {
  for (const auto& [llama, shape] : llamas()) {
    for (const nn::Recompute recompute : llama_recomputations) {
      SCOPED_TRACE(llama + " " + std::string(to_string(recompute)));
      LlamaSetting s(shape, gemm_providers().front(), recompute);
      expect_schedule(s, shape.layers + 2);
    }
  }
}

TEST(LlamaModel, TakesWhatWasPlanned) {
  for (const nn::Recompute recompute : llama_recomputations) {
    for (const LlamaShape& shape : {grouped_llama(3), windowed_llama()}) {
      LlamaSetting s(shape, gemm_providers().front(), recompute);
      expect_planned_memory(s);
    }
  }
}

TEST(LlamaModel, RecomputationChangesNoBit) {
  expect_recomputation_changes_no_bit([](const std::string& provider, nn::Recompute recompute, Precision precision) {
    return LlamaSetting(grouped_llama(3), provider, recompute, precision);
  });
}

/// `tolerance` applies to losses and to the norms of gradients, and `angle` to 1 - their cosines.
void expect_llama_near_float(const LlamaShape& shape, Precision precision, double tolerance, double angle) {
  for (const std::string& provider : exact_gemm_providers()) {
    SCOPED_TRACE(provider);
    LlamaSetting s(shape, provider, nn::Recompute::none, precision), exact(shape, provider);
    for (std::size_t row = 0; row < s.parameters(); ++row) exact.engine->write(row, s.engine->values(row));
    expect_near(s.train(4, 0.5f), exact.train(4, 0.5f), tolerance, "losses");
    for (std::size_t row = 0; row < s.parameters(); ++row) {
      expect_same_gradient(s.engine->gradient(row), exact.engine->gradient(row), angle, tolerance, s.name(row));
    }
  }
}

TEST(LlamaModel, Bfloat16StaysNearFloat) {
  expect_llama_near_float(grouped_llama(), Precision::bfloat16, 4e-2, 2e-3);
  expect_llama_near_float(windowed_llama(), Precision::bfloat16, 4e-2, 2e-3);
}
TEST(LlamaModel, HalfStaysNearFloat) {
  expect_llama_near_float(grouped_llama(), Precision::float16, 5e-3, 3e-5);
  expect_llama_near_float(windowed_llama(), Precision::float16, 1e-2, 1e-4);
}

/// Returns the documented bytes per token that a layer saves, without terms independent of tokens.
std::size_t kept_llama_bytes(const LlamaShape& shape, std::size_t element, nn::Recompute recompute) {
  const std::size_t everything = (2 * shape.hidden + shape.qkv_columns() + shape.normed_columns() +
                                  shape.query_columns() + 2 * shape.feed_forward) *
                                     element +
                                 (shape.heads + 2) * 4;
  const std::size_t again = (shape.qkv_columns() + shape.normed_columns()) * element;
  return recompute == nn::Recompute::none        ? everything
         : recompute == nn::Recompute::attention ? everything - again
                                                 : shape.hidden * element;
}

TEST(LlamaModel, ALayerKeepsTheDocumentedBytesAToken) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    for (const nn::Recompute recompute : llama_recomputations) {
      for (const LlamaShape& shape : {grouped_llama(), windowed_llama()}) {
        constexpr std::size_t rows = 64000;  // arrays then end at multiples of the arena's alignment
        Arena few, many;
        LlamaShape deeper = shape;
        deeper.layers += 2;
        make_llama(shape, precision)->plan(few, {1, rows, 1}, ParameterStore::Purpose::training, recompute);
        make_llama(deeper, precision)->plan(many, {1, rows, 1}, ParameterStore::Purpose::training, recompute);
        EXPECT_EQ(many.peak() - few.peak(), 2 * rows * kept_llama_bytes(shape, bytes_of(precision), recompute))
            << to_string(precision) << " " << to_string(recompute);
      }
    }
  }
}

TEST(LlamaShape, FrequenciesOfLlama3AreShortBetweenAndLong) {
  const RotaryFrequencies scaled = rotary_frequencies(tied_llama());
  LlamaShape plain_shape = tied_llama();
  plain_shape.rope_scaling = {};
  const RotaryFrequencies plain = rotary_frequencies(plain_shape);
  ASSERT_EQ(scaled.pairs, 6u);
  EXPECT_EQ(scaled.radians[0], plain.radians[0]);
  for (const std::size_t between : {1u, 2u}) {
    EXPECT_LT(scaled.radians[between], plain.radians[between]);
    EXPECT_GT(scaled.radians[between], plain.radians[between] / 8.0f);
  }
  for (const std::size_t lengthened : {3u, 4u, 5u}) {
    EXPECT_EQ(scaled.radians[lengthened], plain.radians[lengthened] / 8.0f);
  }
}

TEST(LlamaShape, FrequenciesOfYarnAreInterpolatedOverPairs) {
  LlamaShape shape = yarn_llama(), plain_shape = yarn_llama();
  plain_shape.rope_scaling = {};
  const RotaryFrequencies plain = rotary_frequencies(plain_shape);
  const auto shares = [&] {
    const RotaryFrequencies scaled = rotary_frequencies(shape);
    std::vector<double> kept;
    for (std::size_t i = 0; i < scaled.pairs; ++i) {
      kept.push_back((static_cast<double>(scaled.radians[i]) / static_cast<double>(plain.radians[i]) - 0.25) / 0.75);
    }
    return kept;
  };
  using ::testing::DoubleNear;
  using ::testing::ElementsAre;
  const auto near = [](double value) { return DoubleNear(value, 1e-6); };
  EXPECT_THAT(shares(), ElementsAre(near(1), near(1), near(0.75), near(0.5), near(0.25), near(0), near(0), near(0),
                                    near(0), near(0), near(0), near(0)));
  EXPECT_FLOAT_EQ(rotary_frequencies(shape).scale, 0.1f * std::log(4.0f) + 1.0f);
  shape.rope_scaling.truncates = false;  // pairs 1.379 and 4.991
  EXPECT_NEAR(shares()[2], 1.0 - (2.0 - 1.37876) / (4.99124 - 1.37876), 1e-4);
  shape.rope_scaling.attention_factor = 1.5;
  EXPECT_EQ(rotary_frequencies(shape).scale, 1.5f);
  shape.rope_scaling.original_positions = 0;  // those of the model
  shape.positions = 64;
  EXPECT_NEAR(shares()[2], 1.0 - (2.0 - 1.37876) / (4.99124 - 1.37876), 1e-4);
}

TEST(LlamaShape, RefusesWhatDoesNotFit) {
  const auto message = [](const auto& change) {
    LlamaShape shape = grouped_llama();
    change(shape);
    return error_of([&] { make_llama(shape, Precision::float32); });
  };
  EXPECT_THAT(message([](LlamaShape& s) { s.key_value_heads = 3; }),
              HasSubstr("Llama: 4 heads are not a multiple of 3 key/value heads"));
  EXPECT_THAT(message([](LlamaShape& s) { s.head_size = 5; }),
              HasSubstr("Llama: head size 5 is not an even number from 2 to 256"));
  EXPECT_THAT(message([](LlamaShape& s) { s.layers = 0; }), HasSubstr("Llama: 0 layers, hidden size 20"));
}

}  // namespace
}  // namespace mylos::families
