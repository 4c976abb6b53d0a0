#include "families/llama/llama_config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/files/json.hpp"
#include "data/huggingface/pretrained.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::families {
namespace {

using ::testing::HasSubstr;
using tests::error_of;

Json small_llama() {
  return {{"model_type", "llama"},        {"vocab_size", 97},       {"hidden_size", 32},
          {"intermediate_size", 56},      {"num_hidden_layers", 2}, {"num_attention_heads", 4},
          {"max_position_embeddings", 64}};
}

/// Parses `json` as if read from a file F.
LlamaShape parse_llama(const Json& json) { return read_llama_config({parse_json(json.dump(), "F"), "F"}); }

LlamaShape llama_with(const char* key, const Json& value) {
  Json json = small_llama();
  json[key] = value;
  return parse_llama(json);
}

std::string llama_message(const char* key, const Json& value) {
  return error_of([&] { llama_with(key, value); });
}

const Json llama3_scaling = {{"rope_type", "llama3"},
                             {"factor", 8.0},
                             {"low_freq_factor", 1.0},
                             {"high_freq_factor", 4.0},
                             {"original_max_position_embeddings", 8192}};

TEST(LlamaConfig, AbsentKeysTakeHuggingFacesDefaults) {
  const LlamaShape config = parse_llama(small_llama());
  EXPECT_EQ(config.vocabulary, 97u);
  EXPECT_EQ(config.hidden, 32u);
  EXPECT_EQ(config.feed_forward, 56u);
  EXPECT_EQ(config.layers, 2u);
  EXPECT_EQ(config.heads, 4u);
  EXPECT_EQ(config.key_value_heads, 4u);
  EXPECT_EQ(config.head_size, 8u);
  EXPECT_EQ(config.rope_theta, 10000.0);
  EXPECT_EQ(config.rope_scaling, RotaryScaling());
  EXPECT_EQ(config.rms_norm_epsilon, 1e-6f);
  EXPECT_EQ(config.initializer_range, 0.02f);
  EXPECT_FALSE(config.tied);
  EXPECT_EQ(config.begin_token, 1);
  EXPECT_EQ(config.end_tokens, std::vector<std::int32_t>{2});
  EXPECT_EQ(config.padding_token, no_padding);
}

TEST(LlamaConfig, EveryFieldSurvivesWritingAndReading) {
  LlamaShape config{.vocabulary = 11,
                    .hidden = 60,
                    .layers = 1,
                    .heads = 6,
                    .key_value_heads = 3,
                    .head_size = 16,
                    .feed_forward = 7,
                    .positions = 5,
                    .rope_theta = 5e5,
                    .rope_scaling = {RotaryScaling::Kind::llama3, 8.0, 1.5, 4.5, 77},
                    .rms_norm_epsilon = 1e-5f,
                    .initializer_range = 0.5,
                    .tied = true,
                    .padding_token = 6,
                    .begin_token = 3,
                    .end_tokens = {4, 5}};
  const auto again = [&] { return read_llama_config({Json(llama_config_json(config)), "F"}); };
  EXPECT_EQ(again(), config);
  config.rope_scaling = {.kind = RotaryScaling::Kind::linear, .factor = 2.0};
  config.begin_token.reset();
  config.padding_token = no_padding;
  config.end_tokens.clear();
  EXPECT_EQ(again(), config);
  config.rope_scaling = {};
  config.end_tokens = {2};
  EXPECT_EQ(again(), config);
  EXPECT_EQ(llama_config_json(config)["architectures"], OrderedJson({"LlamaForCausalLM"}));
  EXPECT_EQ(llama_config_json(config, "bfloat16")["torch_dtype"], "bfloat16");
}

TEST(LlamaConfig, ReadsTheReferences) {
  const auto folder = tests::golden_data() / "reference/llama";
  const LlamaShape grouped = read_llama_config({FileReader(), folder / "grouped/config.json"});
  EXPECT_EQ(grouped.key_value_heads, 2u);
  EXPECT_EQ(grouped.rope_theta, 1e6) << "at the top level";
  EXPECT_FALSE(grouped.tied);
  const LlamaShape tied = read_llama_config({FileReader(), folder / "tied/config.json"});
  EXPECT_EQ(tied.head_size, 10u);
  EXPECT_EQ(tied.rope_scaling, (RotaryScaling{RotaryScaling::Kind::llama3, 4.0, 1.0, 4.0, 32}));
  EXPECT_TRUE(tied.tied);
}

TEST(LlamaConfig, ReadsTheReferenceOfTransformers5) {
  const auto folder = tests::shared_reference() / "llama/stories260K";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << folder << " is not there";
  const LlamaShape stories = read_llama_config(data::PretrainedModel(FileReader(), folder));
  EXPECT_EQ(stories.rope_theta, 10000.0) << "under rope_parameters";
  EXPECT_TRUE(stories.tied);
  EXPECT_EQ(stories.padding_token, no_padding);
}

TEST(LlamaConfig, RotaryEmbeddingsAreReadAtBothPlaces) {
  const RotaryScaling expected{RotaryScaling::Kind::llama3, 8.0, 1.0, 4.0, 8192};
  EXPECT_EQ(llama_with("rope_scaling", llama3_scaling).rope_scaling, expected);
  Json parameters = llama3_scaling;
  parameters["rope_theta"] = 5e5;
  EXPECT_EQ(llama_with("rope_parameters", parameters).rope_scaling, expected);
  EXPECT_EQ(llama_with("rope_parameters", parameters).rope_theta, 5e5);
  const RotaryScaling linear{.kind = RotaryScaling::Kind::linear, .factor = 4.0};
  EXPECT_EQ(llama_with("rope_scaling", {{"type", "linear"}, {"factor", 4.0}}).rope_scaling, linear);
  EXPECT_EQ(llama_with("rope_scaling", {{"rope_type", "default"}}).rope_scaling, RotaryScaling());
  EXPECT_EQ(llama_with("rope_scaling", nullptr).rope_scaling, RotaryScaling());

  Json both = small_llama();
  both["rope_theta"] = 5e5;
  both["rope_parameters"] = parameters;
  both["rope_scaling"] = llama3_scaling;
  EXPECT_EQ(parse_llama(both).rope_scaling, expected);
  both["rope_scaling"]["factor"] = 4.0;
  EXPECT_EQ(error_of([&] { parse_llama(both); }),
            "F: rope_scaling and rope_parameters contradict each other; remove one");
  both["rope_theta"] = 1e4;
  EXPECT_EQ(error_of([&] { parse_llama(both); }), "F: rope_theta = 10000, but 500000 in rope_parameters");
}

/// transformers 5 reads the base in rope_scaling, and former versions do not.
TEST(LlamaConfig, TheBaseInTheScalingMustBeTheModels) {
  const Json scaling = {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 777.0}};
  Json json = small_llama();
  json["rope_scaling"] = scaling;
  EXPECT_EQ(parse_llama(json).rope_theta, 777.0);
  json["rope_theta"] = 5e5;
  EXPECT_EQ(error_of([&] { parse_llama(json); }), "F: rope_theta = 500000, but 777 in rope_scaling");
}

TEST(LlamaConfig, AScalingWithoutATypeIsRefused) {
  for (const char* const key : {"rope_scaling", "rope_parameters"}) {
    EXPECT_EQ(llama_with(key, {{"rope_theta", 5e5}, {"factor", nullptr}}).rope_theta, 5e5);
    EXPECT_EQ(llama_message(key, {{"factor", 2.0}}),
              fmt::format("F: {}: factor without a rope_type; add \"rope_type\"", key));
  }
  EXPECT_EQ(llama_message("rope_parameters", {{"full_attention", {{"rope_theta", 5e5}}}}),
            "F: rope_parameters: full_attention without a rope_type; add \"rope_type\"");
}

/// transformers 5 prefers those beside the scaling, and former versions ignore them.
TEST(LlamaConfig, OriginalPositionsBesideTheScalingMustBeItsOwn) {
  const std::string refusal =
      "F: original_max_position_embeddings = 16, but rotary embeddings are scaled from {}; remove one";
  const Json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}};
  const auto message = [](const Json& scaling, std::size_t positions) {
    Json json = small_llama();
    json["rope_scaling"] = scaling;
    json["original_max_position_embeddings"] = positions;
    return error_of([&] { parse_llama(json); });
  };
  EXPECT_EQ(message(llama3_scaling, 16), fmt::format(fmt::runtime(refusal), 8192));
  EXPECT_EQ(message(yarn, 16), fmt::format(fmt::runtime(refusal), 64)) << "the model's";
  for (const auto& [scaling, positions] :
       {std::pair{llama3_scaling, 8192}, {yarn, 64}, {Json{{"rope_type", "linear"}, {"factor", 2.0}}, 16}}) {
    EXPECT_EQ(message(scaling, static_cast<std::size_t>(positions)), "(nothing was thrown)");
  }
}

TEST(LlamaConfig, YarnIsReadWithItsDefaults) {
  const auto scaling = [](const Json& more) {
    Json yarn = {{"type", "yarn"}, {"factor", 4.0}};
    yarn.update(more);
    return llama_with("rope_scaling", yarn).rope_scaling;
  };
  RotaryScaling expected{.kind = RotaryScaling::Kind::yarn, .factor = 4.0, .original_positions = 0};
  EXPECT_EQ(scaling(Json::object()), expected);
  expected.original_positions = 32;
  expected.fast = 16.0;
  expected.slow = 2.0;
  expected.truncates = false;
  expected.attention_factor = 1.25;
  EXPECT_EQ(scaling({{"original_max_position_embeddings", 32},
                     {"beta_fast", 16.0},
                     {"beta_slow", 2},
                     {"truncate", false},
                     {"attention_factor", 1.25}}),
            expected);
  LlamaShape config = parse_llama(small_llama());
  for (const RotaryScaling& one : {expected, scaling(Json::object())}) {
    config.rope_scaling = one;
    EXPECT_EQ(read_llama_config({Json(llama_config_json(config)), "F"}), config);
  }
  EXPECT_EQ(error_of([&] {
              scaling({{"mscale", 1.0}});
            }),
            "F: rope_scaling: mscale is not supported; give attention_factor instead");
  EXPECT_EQ(llama_message("rope_scaling", {{"type", "yarn"}}),
            "F: rope_scaling: no \"factor\"; rotary embeddings of type \"yarn\" need it");
  Json slow = small_llama();
  slow["rope_theta"] = 1.0;
  slow["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}};
  EXPECT_EQ(error_of([&] { parse_llama(slow); }),
            "F: rope_theta = 1 is not above 1, which rotary embeddings of type \"yarn\" need");
}

TEST(LlamaConfig, OtherRotaryEmbeddingsAreNamed) {
  for (const char* type : {"dynamic", "longrope"}) {
    EXPECT_EQ(llama_message("rope_scaling", {{"rope_type", type}, {"factor", 2.0}}),
              fmt::format("F: rope_scaling: rope_type = \"{}\" is not supported; only \"default\", \"linear\", "
                          "\"llama3\" and \"yarn\" are",
                          type));
  }
  EXPECT_THAT(llama_message("rope_scaling", {{"type", "dynamic"}}),
              HasSubstr("F: rope_scaling: type = \"dynamic\" is not supported"));
  EXPECT_EQ(llama_message("rope_scaling", {{"type", "linear"}}),
            "F: rope_scaling: no \"factor\"; rotary embeddings of type \"linear\" need it");
  Json scaling = llama3_scaling;
  scaling.erase("original_max_position_embeddings");
  EXPECT_EQ(
      llama_message("rope_parameters", scaling),
      "F: rope_parameters: no \"original_max_position_embeddings\"; rotary embeddings of type \"llama3\" need it");
  scaling = llama3_scaling;
  scaling["low_freq_factor"] = 4.0;
  EXPECT_EQ(llama_message("rope_scaling", scaling),
            "F: rope_scaling: low_freq_factor = 4 is not below high_freq_factor = 4");
  EXPECT_EQ(llama_message("rope_scaling", 3), "F: rope_scaling: not a JSON object");
  EXPECT_EQ(llama_message("rope_theta", -1.0), "F: rope_theta = -1.0 is not a number above 0 and below 1000000000000");
  EXPECT_EQ(llama_message("rope_parameters", {{"partial_rotary_factor", 0.5}}),
            "F: rope_parameters: partial_rotary_factor = 0.5 is not supported; only 1 is");
  EXPECT_EQ(llama_message("partial_rotary_factor", 0.5), "F: partial_rotary_factor = 0.5 is not supported; only 1 is");
}

/// A small model of this type with these keys.
LlamaShape member_with(const char* type, const Json& keys = Json::object()) {
  Json json = small_llama();
  json["model_type"] = type;
  json.update(keys);
  return parse_llama(json);
}

std::vector<bool> biases_of(const LlamaShape& shape) { return {shape.qkv_bias, shape.output_bias, shape.mlp_bias}; }

TEST(LlamaMembers, BiasesAreThoseOfTheMember) {
  const Json both = {{"attention_bias", true}, {"mlp_bias", true}};
  EXPECT_EQ(biases_of(member_with("llama")), (std::vector{false, false, false}));
  EXPECT_EQ(biases_of(member_with("llama", both)), (std::vector{true, true, true}));
  const Json heads = {{"num_key_value_heads", 2}};
  EXPECT_EQ(biases_of(member_with("qwen2", heads)), (std::vector{true, false, false}));
  Json more = both;
  more.update(heads);
  EXPECT_EQ(biases_of(member_with("qwen3", more)), (std::vector{true, true, false}));
  EXPECT_EQ(biases_of(member_with("mistral", more)), (std::vector{false, false, false})) << "it has no such keys";
  EXPECT_TRUE(member_with("qwen3", heads).head_norms);
  EXPECT_FALSE(member_with("qwen2", heads).head_norms);
  EXPECT_EQ(llama_message("attention_bias", 1), "F: attention_bias = 1 is neither true nor false");
}

TEST(LlamaMembers, DefaultsAreThoseOfTheMembersConfiguration) {
  EXPECT_EQ(error_of([] { member_with("mistral"); }),
            "F: num_attention_heads = 4 is not a multiple of num_key_value_heads = 8");
  EXPECT_EQ(error_of([] { member_with("qwen2"); }),
            "F: num_attention_heads = 4 is not a multiple of num_key_value_heads = 32");
  EXPECT_EQ(member_with("qwen2", {{"num_key_value_heads", nullptr}}).key_value_heads, 4u);
  const LlamaShape qwen = member_with("qwen3", {{"num_key_value_heads", 4}});
  EXPECT_EQ(qwen.head_size, 128u);
  EXPECT_EQ(member_with("qwen3", {{"num_key_value_heads", 4}, {"head_dim", nullptr}}).head_size, 8u);
  EXPECT_EQ(member_with("qwen3", {{"num_key_value_heads", 4}, {"head_dim", 20}}).head_size, 20u);
  EXPECT_EQ(qwen.begin_token, std::nullopt);
  EXPECT_EQ(qwen.end_tokens, std::vector<std::int32_t>());
}

/// The windows of both layers.
std::vector<int> windows_of(const LlamaShape& shape) {
  return {attention_shape(shape, 0).window, attention_shape(shape, 1).window};
}

TEST(LlamaMembers, WindowsAreThoseOfTheLayers) {
  constexpr int all = no_window;
  const auto windows = [](const char* type, Json keys) {
    keys["num_key_value_heads"] = 2;
    return windows_of(member_with(type, keys));
  };
  EXPECT_EQ(windows("llama", {{"sliding_window", 8}}), (std::vector{all, all})) << "it has no such key";
  EXPECT_EQ(windows("mistral", {{"sliding_window", 8}}), (std::vector{8, 8}));
  EXPECT_EQ(windows("mistral", {{"sliding_window", nullptr}}), (std::vector{all, all}));
  EXPECT_EQ(windows("mistral", Json::object()), (std::vector{4096, 4096}));
  EXPECT_EQ(windows("qwen2", {{"sliding_window", 8}, {"max_window_layers", 1}}), (std::vector{all, all}));
  Json used = {{"sliding_window", 8}, {"max_window_layers", 1}, {"use_sliding_window", true}};
  EXPECT_EQ(windows("qwen2", used), (std::vector{all, 8}));
  EXPECT_EQ(windows("qwen3", used), (std::vector{all, 8}));
  used["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_EQ(windows("qwen3", used), (std::vector{all, 8}));
  used["max_window_layers"] = 0;
  EXPECT_EQ(error_of([&] { windows("qwen3", used); }),
            "F: layer_types says \"full_attention\" of layer 0; only \"sliding_attention\", which follows from the "
            "other keys, is supported");
  used["layer_types"] = Json::array({"sliding_attention"});
  EXPECT_THAT(error_of([&] { windows("qwen3", used); }), HasSubstr("F: layer_types says nothing of layer 1; "));
  used["layer_types"] = 3;
  EXPECT_THAT(error_of([&] { windows("qwen3", used); }), HasSubstr("F: layer_types says nothing of layer 0; "));
  used.erase("layer_types");
  EXPECT_EQ(windows("qwen3", used), (std::vector{8, 8}));
  used["max_window_layers"] = 2;
  EXPECT_EQ(windows("qwen3", used), (std::vector{all, all}));
  EXPECT_THAT(error_of([&] {
                windows("mistral", {{"sliding_window", 0}});
              }),
              HasSubstr("F: sliding_window = 0 is not a whole number from 1 to "));
}

TEST(LlamaMembers, EachSurvivesWritingAndReading) {
  LlamaShape config = parse_llama(small_llama());
  config.key_value_heads = 2;
  const auto again = [&] { return read_llama_config({Json(llama_config_json(config)), "F"}); };
  config.qkv_bias = config.output_bias = config.mlp_bias = true;
  EXPECT_EQ(again(), config);
  config.model_type = "qwen3";
  config.mlp_bias = false;
  config.head_norms = true;
  config.window = 9;
  config.first_windowed = 1;
  EXPECT_EQ(again(), config);
  config.model_type = "qwen2";
  config.output_bias = config.head_norms = false;
  EXPECT_EQ(again(), config);
  config.window = no_window;
  config.first_windowed = 0;
  EXPECT_EQ(again(), config);
  EXPECT_EQ(llama_config_json(config)["architectures"], OrderedJson({"Qwen2ForCausalLM"}));
  config.model_type = "mistral";
  config.qkv_bias = false;
  EXPECT_EQ(again(), config);
  config.window = 3;
  EXPECT_EQ(again(), config);
  config.model_type = "gemma";
  EXPECT_THAT(error_of([&] { llama_config_json(config); }),
              HasSubstr("Llama: no member of the family is called gemma"));
}

TEST(LlamaConfig, OtherModelsAreNamed) {
  EXPECT_THAT(llama_message("model_type", "gemma"), ::testing::StartsWith("F: model_type is \"gemma\""));
  EXPECT_EQ(llama_message("model_type", nullptr),
            "F: no \"model_type\"; add \"model_type\": \"llama\" if it is a Llama");
  EXPECT_EQ(llama_message("hidden_act", "gelu"), "F: hidden_act = \"gelu\" is not supported; only \"silu\" is");
  EXPECT_EQ(llama_message("hidden_act", "swish"), "(nothing was thrown)");
  EXPECT_EQ(llama_message("attention_dropout", 0.1), "F: attention_dropout = 0.1 is not supported; only 0 is");
  EXPECT_EQ(llama_message("tie_word_embeddings", 1), "F: tie_word_embeddings = 1 is neither true nor false");
}

TEST(LlamaConfig, ImpossibleSizesAreNamed) {
  for (const std::string key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                                "num_attention_heads", "max_position_embeddings"}) {
    EXPECT_EQ(llama_message(key.c_str(), nullptr), "F: no \"" + key + "\"; a Llama needs it");
    EXPECT_THAT(llama_message(key.c_str(), 0), HasSubstr("F: " + key + " = 0 is not a whole number from 1 to "));
  }
  EXPECT_EQ(llama_message("num_key_value_heads", 3),
            "F: num_attention_heads = 4 is not a multiple of num_key_value_heads = 3");
  EXPECT_EQ(llama_message("hidden_size", 34),
            "F: hidden_size = 34 is not a multiple of num_attention_heads = 4; head_dim must then be given");
  EXPECT_EQ(llama_message("head_dim", 7), "F: heads of 7 elements; rotary embeddings take an even number up to 256");
  EXPECT_EQ(llama_message("hidden_size", 4 * 258),
            "F: heads of 258 elements; rotary embeddings take an even number up to 256");
  EXPECT_EQ(llama_with("head_dim", 18).head_size, 18u);
}

TEST(LlamaConfig, TokensAreOfTheVocabulary) {
  EXPECT_EQ(llama_with("bos_token_id", nullptr).begin_token, std::nullopt);
  EXPECT_EQ(llama_with("eos_token_id", nullptr).end_tokens, std::vector<std::int32_t>());
  EXPECT_EQ(llama_with("eos_token_id", {96, 5}).end_tokens, (std::vector<std::int32_t>{96, 5}));
  EXPECT_EQ(llama_with("pad_token_id", 0).padding_token, 0);
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    EXPECT_EQ(llama_message(key, 97), fmt::format("F: {} = 97 is not a whole number from 0 to 96", key));
  }
  EXPECT_EQ(llama_message("eos_token_id", {2, 97}), "F: eos_token_id = [2,97]: expected whole numbers from 0 to 96");
}

TEST(LlamaConfig, NumbersAreInTheirRange) {
  EXPECT_EQ(llama_message("rms_norm_eps", 0), "F: rms_norm_eps = 0 is not a number above 0 and below 0.1");
}

TEST(LlamaTensors, ABareModelsNamesStandBelowModel) {
  EXPECT_EQ(canonical_llama_name("embed_tokens.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(canonical_llama_name("layers.3.mlp.up_proj.weight"), "model.layers.3.mlp.up_proj.weight");
  EXPECT_EQ(canonical_llama_name("norm.weight"), "model.norm.weight");
  for (const auto* name : {"model.layers.0.self_attn.q_proj.weight", "lm_head.weight", "model.norm.weight"}) {
    EXPECT_EQ(canonical_llama_name(name), name);
  }
}

TEST(LlamaTensors, BuffersAndATiedHeadAreIgnored) {
  const auto* const buffer = "model.layers.0.self_attn.rotary_emb.inv_freq";
  for (const bool tied : {false, true}) {
    const data::TensorNaming naming = llama_tensor_naming(tied);
    EXPECT_TRUE(naming.ignores(buffer));
    EXPECT_EQ(naming.ignores("lm_head.weight"), tied);
    EXPECT_FALSE(naming.ignores("model.layers.0.self_attn.q_proj.bias"));
    EXPECT_EQ(naming.model, "a Llama");
  }
}

}  // namespace
}  // namespace mylos::families
