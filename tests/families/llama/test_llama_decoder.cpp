// Compares decoding token by token with full forward passes, and a prompt's bits alone and beside other prompts.

#include "families/llama/llama_decoder.hpp"

#include "families/llama/llama_body.hpp"
#include "tests/families/llama/llama_logits.hpp"
#include "tests/families/llama/llama_twin.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace mylos::families {
namespace {

using namespace tests;
using ::testing::HasSubstr;

/// 4 query heads of size 6 use 2 key and value heads.
LlamaShape decoded_llama() {
  return {.vocabulary = 37,
          .hidden = 20,
          .layers = 3,
          .heads = 4,
          .key_value_heads = 2,
          .head_size = 6,
          .feed_forward = 28,
          .positions = 40,
          .rope_theta = 50.0,
          .rms_norm_epsilon = 1e-5f,
          .initializer_range = 0.2f};
}

/// Returns models with untied and tied heads, one and all key/value heads, every scaling of rotary embeddings, and one
/// with biases, norms of heads, and a window that steps leave behind.
std::vector<LlamaShape> decoded_llamas() {
  LlamaShape tied = decoded_llama(), linear = decoded_llama();
  tied.key_value_heads = 1;
  tied.head_size = 12;
  tied.tied = true;
  tied.rope_scaling = {RotaryScaling::Kind::llama3, 8.0, 1.0, 4.0, 40};
  linear.key_value_heads = 4;
  linear.rope_scaling = {.kind = RotaryScaling::Kind::linear, .factor = 2.5};
  LlamaShape windowed = decoded_llama();
  windowed.qkv_bias = windowed.output_bias = windowed.mlp_bias = windowed.head_norms = true;
  windowed.window = 13;
  windowed.first_windowed = 1;
  return {decoded_llama(), tied, linear, windowed};
}

struct DecoderSetting {
  DecoderSetting(const LlamaShape& of, Precision precision, const DecoderShape& decoded)
      : shape(of),
        sizes(decoded),
        model(make_llama_logits(of, precision)),
        decoder(make_llama_decoder(of, precision, model->table())) {
    Arena planned;
    decoder->plan(planned, sizes);
    Arena whole;
    model->plan(whole, {1, of.positions, of.positions}, ParameterStore::Purpose::inference, nn::Recompute::none);
    engine = std::make_unique<Engine>(model->table(), precision, std::max(planned.peak(), whole.peak()),
                                      gemm_providers().front());
    arena = std::make_unique<Arena>("test::decoder", planned.peak());
    decoder->begin(pass(), sizes);
  }
  nn::Pass pass() { return {engine->space, engine->gemm, engine->store, engine->hooks, *arena}; }

  Values prefill(std::size_t slot, std::span<const std::int32_t> prompt) {
    return host_values(decoder->prefill(pass(), slot, prompt));
  }
  Values step(const std::vector<std::size_t>& slots, const std::vector<std::int32_t>& tokens) {
    return host_values(decoder->step(pass(), slots, tokens));
  }
  /// Computes the logits of the last token by a pass over all tokens.
  Values full(std::span<const std::int32_t> tokens) {
    LlamaTwinBatch data(shape, {tokens.size()});
    data.tokens.assign(tokens.begin(), tokens.end());
    Batch batch;
    data.fill(0, 1, batch);
    const Values all = host_values(model->predict(engine->pass(), batch, {}));
    return {all.end() - static_cast<std::ptrdiff_t>(shape.vocabulary), all.end()};
  }

  LlamaShape shape;
  DecoderShape sizes;
  std::unique_ptr<nn::Model> model;
  std::unique_ptr<TextDecoder> decoder;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Arena> arena;
};

std::vector<std::int32_t> some_tokens(std::size_t count, std::uint64_t seed) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<std::int32_t>(uniform_below(37, seed, 0, i)));
  return tokens;
}

/// In float, a pass and a step each differ from the double-precision reference by up to 4.4e-6, due to the order of
/// sums. In 16 bits they round at different points, and only in a pass does attention round probabilities.
double bound_of(Precision precision) {
  if (precision == Precision::float32) return 1e-5;
  return precision == Precision::bfloat16 ? 1e-1 : 5e-3;
}

TEST(LlamaDecoder, StepsGiveTheLogitsOfFullPasses) {
  constexpr std::array precisions = {Precision::float32, Precision::bfloat16, Precision::float16};
  for (const LlamaShape& shape : decoded_llamas()) {
    for (const Precision precision : precisions) {
      DecoderSetting s(shape, precision, {.slots = 2, .positions = 40, .longest_prompt = 11});
      const auto tokens = some_tokens(40, 5);
      const std::span all(tokens);
      for (std::size_t length = 11; length <= 40; ++length) {
        const std::string name =
            fmt::format("{} key/value heads in {}, {} tokens", shape.key_value_heads, to_string(precision), length);
        const Values logits = length == 11 ? s.prefill(1, all.first(11)) : s.step({1}, {tokens[length - 1]});
        expect_near(logits, s.full(all.first(length)), bound_of(precision), name);
      }
    }
  }
}

/// The bits depend neither on other sequences at other positions, nor on sequences that have ended.
TEST(LlamaDecoder, ASequenceHasTheSameBitsInEveryCompany) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    const std::array lengths = {1u, 9u, 4u};
    std::vector<std::vector<Values>> alone(3);
    for (std::size_t i = 0; i < 3; ++i) {
      DecoderSetting s(decoded_llama(), precision, {.slots = 1, .positions = 20, .longest_prompt = 9});
      alone[i].push_back(s.prefill(0, some_tokens(lengths[i], i)));
      for (std::int32_t step = 0; step < 6; ++step) alone[i].push_back(s.step({0}, {step}));
    }
    DecoderSetting s(decoded_llama(), precision, {.slots = 5, .positions = 30, .longest_prompt = 12});
    for (const std::size_t i : {2u, 0u, 1u}) {
      s.prefill(i + 1, some_tokens(12, 99));  // the slot's old content
      EXPECT_EQ(s.prefill(i + 1, some_tokens(lengths[i], i)), alone[i][0]) << i;
    }
    for (std::int32_t step = 0; step < 6; ++step) {
      const std::vector<std::size_t> slots = step < 3 ? std::vector<std::size_t>{3, 1, 2} : std::vector<std::size_t>{2};
      const Values logits = s.step(slots, std::vector<std::int32_t>(slots.size(), step));
      for (std::size_t row = 0; row < slots.size(); ++row) {
        const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * 37);
        EXPECT_EQ(Values(begin, begin + 37), alone[slots[row] - 1][static_cast<std::size_t>(step) + 1]) << step;
      }
    }
  }
}

TEST(LlamaDecoder, TellsTheScheduleEachUnit) {
  DecoderSetting s(decoded_llama(), Precision::float32, {.slots = 1, .positions = 4, .longest_prompt = 2});
  const auto expected = expected_prediction_calls(5);
  s.prefill(0, some_tokens(2, 1));
  EXPECT_EQ(s.engine->hooks.entries(), expected);
  s.engine->hooks.clear();
  s.step({0}, {3});
  EXPECT_EQ(s.engine->hooks.entries(), expected);
}

TEST(LlamaDecoder, RefusesWhatItWasNotPlannedFor) {
  DecoderSetting s(decoded_llama(), Precision::float32, {.slots = 2, .positions = 5, .longest_prompt = 4});
  const auto tokens = some_tokens(5, 1);
  EXPECT_THAT(error_of([&] { s.prefill(0, tokens); }), HasSubstr("a prompt of 5 tokens"));
  EXPECT_THAT(error_of([&] { s.prefill(2, {tokens.data(), 1}); }), HasSubstr("slot 2"));
  EXPECT_THAT(error_of([&] { s.prefill(0, {}); }), HasSubstr("a prompt of 0 tokens"));
  EXPECT_THAT(error_of([&] { s.step({1}, {0}); }), HasSubstr("slot 1 of 2 has 0 tokens of 5"));
  s.prefill(0, {tokens.data(), 4});
  s.step({0}, {1});
  EXPECT_THAT(error_of([&] { s.step({0}, {1}); }), HasSubstr("slot 0 of 2 has 5 tokens of 5"));
  EXPECT_THAT(error_of([&] {
                s.decoder->begin(s.pass(), {1, 41, 3});
              }),
              HasSubstr("41 positions, and the model has 40"));
}

}  // namespace
}  // namespace mylos::families
