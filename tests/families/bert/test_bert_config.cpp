#include "families/bert/bert_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/files/json.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::families {
namespace {

using ::testing::HasSubstr;
using tests::error_of;

Json small() {
  return {{"model_type", "bert"},         {"vocab_size", 97},         {"hidden_size", 32},
          {"num_hidden_layers", 2},       {"num_attention_heads", 4}, {"intermediate_size", 64},
          {"max_position_embeddings", 64}};
}

/// Parses `json` as if read from a file F.
BertShape parse_text(const Json& json) { return read_bert_config({parse_json(json.dump(), "F"), "F"}); }

std::string message_with(const char* key, const Json& value) {
  auto json = small();
  json[key] = value;
  return error_of([&] { parse_text(json); });
}

TEST(BertConfig, AbsentKeysTakeHuggingFacesDefaults) {
  const auto config = parse_text(small());
  EXPECT_EQ(config.vocabulary, 97u);
  EXPECT_EQ(config.hidden, 32u);
  EXPECT_EQ(config.layers, 2u);
  EXPECT_EQ(config.heads, 4u);
  EXPECT_EQ(config.feed_forward, 64u);
  EXPECT_EQ(config.positions, 64u);
  EXPECT_EQ(config.token_types, 2u);
  EXPECT_EQ(config.padding_token, 0);
  EXPECT_EQ(config.hidden_dropout, 0.1f);
  EXPECT_EQ(config.attention_dropout, 0.1f);
  EXPECT_EQ(config.layer_norm_epsilon, 1e-12f);
  EXPECT_EQ(config.initializer_range, 0.02f);
}

TEST(BertConfig, ReadsTheReferenceAndWritesItBack) {
  const auto config = read_bert_config({FileReader(), tests::golden_data() / "reference/tiny_bert/config.json"});
  EXPECT_EQ(config.vocabulary, 61u);
  EXPECT_EQ(config.hidden_dropout, 0.0f);
  EXPECT_EQ(config.initializer_range, 0.02f);
  const OrderedJson written = bert_config_json(config);
  EXPECT_EQ(read_bert_config({Json(written), "written"}), config);
  EXPECT_EQ(written["architectures"], OrderedJson({"BertForQuestionAnswering"}));
}

// PyTorch trains token 0 in this case; without the key, it is the padding token.
TEST(BertConfig, NoTokenIsPaddingWherePadTokenIdIsNull) {
  Json json = Json::parse(tests::read_file(tests::golden_data() / "reference/tiny_bert/config.json"));
  json["pad_token_id"] = nullptr;
  const BertShape config = parse_text(json);
  EXPECT_EQ(config.padding_token, no_padding);
  EXPECT_EQ(read_bert_config({Json(bert_config_json(config)), "written"}), config);
  json.erase("pad_token_id");
  EXPECT_EQ(parse_text(json).padding_token, 0);
}

TEST(BertConfig, EveryFieldSurvivesWritingAndReading) {
  BertShape config{.vocabulary = 11,
                   .hidden = 60,
                   .layers = 1,
                   .heads = 3,
                   .feed_forward = 7,
                   .positions = 5,
                   .token_types = 3,
                   .hidden_dropout = 0.25,
                   .attention_dropout = 0.125,
                   .layer_norm_epsilon = 1e-5f,
                   .initializer_range = 0.5,
                   .padding_token = 4};
  EXPECT_EQ(read_bert_config({Json(bert_config_json(config)), "F"}), config);
}

TEST(BertConfig, AcceptsGeluByItsOtherNameAndOldFilesWithoutModelType) {
  EXPECT_EQ(message_with("hidden_act", "gelu_python"), "(nothing was thrown)");
  EXPECT_EQ(message_with("pad_token_id", nullptr), "(nothing was thrown)");
  auto json = small();
  json.erase("model_type");
  json["architectures"] = {"BertForMaskedLM"};
  EXPECT_NO_THROW(parse_text(json));
}

TEST(BertConfig, OtherModelsAreNamed) {
  EXPECT_EQ(message_with("model_type", "roberta"), "F: model_type is \"roberta\", but \"bert\" is needed here");
  EXPECT_EQ(message_with("model_type", "llama"), "F: model_type is \"llama\", but \"bert\" is needed here");
  EXPECT_EQ(message_with("model_type", 3), "F: model_type = 3 is not a string");
  EXPECT_EQ(message_with("model_type", nullptr),
            "F: no \"model_type\"; add \"model_type\": \"bert\" if it is a BERT model");
  Json json = small();
  json.erase("model_type");
  json["architectures"] = {"RobertaForMaskedLM"};
  EXPECT_EQ(error_of([&] { parse_text(json); }),
            "F: no \"model_type\" (RobertaForMaskedLM); add \"model_type\": \"bert\" if it is a BERT model");
  for (const Json& none : {Json(nullptr), Json::array()}) {
    json["architectures"] = none;
    EXPECT_EQ(error_of([&] { parse_text(json); }),
              "F: no \"model_type\"; add \"model_type\": \"bert\" if it is a BERT model");
  }
  EXPECT_EQ(message_with("hidden_act", "gelu_new"), "F: hidden_act = \"gelu_new\" is not supported; only \"gelu\" is");
  EXPECT_EQ(message_with("hidden_act", "relu"), "F: hidden_act = \"relu\" is not supported; only \"gelu\" is");
  EXPECT_EQ(message_with("hidden_act", "gelu_pytorch_tanh"),
            "F: hidden_act = \"gelu_pytorch_tanh\" is not supported; only \"gelu\" is");
  EXPECT_EQ(message_with("position_embedding_type", "relative_key"),
            "F: position_embedding_type = \"relative_key\" is not supported; only \"absolute\" is");
  EXPECT_EQ(message_with("is_decoder", true), "F: is_decoder = true is not supported; only false is (an encoder)");
  EXPECT_EQ(message_with("add_cross_attention", true),
            "F: add_cross_attention = true is not supported; only false is (an encoder)");
}

TEST(BertConfig, ImpossibleSizesAreNamed) {
  for (const std::string key : {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                                "intermediate_size", "max_position_embeddings"}) {
    EXPECT_EQ(message_with(key.c_str(), nullptr), "F: no \"" + key + "\"; a BERT model needs it");
    for (const Json& bad : {Json(0), Json(-4), Json(1.5), Json("12"), Json(1ULL << 60)}) {
      EXPECT_THAT(message_with(key.c_str(), bad),
                  HasSubstr("F: " + key + " = " + bad.dump() + " is not a whole number from 1 to "));
    }
  }
  EXPECT_EQ(message_with("type_vocab_size", 1), "F: type_vocab_size = 1 is not a whole number from 2 to 16777216");
  EXPECT_EQ(message_with("hidden_size", 34), "F: hidden_size = 34 is not a multiple of num_attention_heads = 4");
  EXPECT_EQ(error_of([] { read_bert_config({Json::array({1}), "F"}); }), "F: not a JSON object");
  EXPECT_EQ(message_with("pad_token_id", 97), "F: pad_token_id = 97 is not below vocab_size = 97");
}

TEST(BertConfig, ImpossibleNumbersAreNamed) {
  EXPECT_EQ(message_with("hidden_dropout_prob", 1.0),
            "F: hidden_dropout_prob = 1.0 is not a number of at least 0 and below 1");
  EXPECT_EQ(message_with("attention_probs_dropout_prob", -0.5),
            "F: attention_probs_dropout_prob = -0.5 is not a number of at least 0 and below 1");
  EXPECT_EQ(message_with("layer_norm_eps", 0), "F: layer_norm_eps = 0 is not a number above 0 and below 0.1");
  EXPECT_EQ(message_with("initializer_range", "x"),
            "F: initializer_range = \"x\" is not a number of at least 0 and below 10");
}

TEST(BertTensors, NamesAreTodays) {
  EXPECT_EQ(canonical_bert_name("bert.embeddings.LayerNorm.gamma"), "bert.embeddings.LayerNorm.weight");
  EXPECT_EQ(canonical_bert_name("encoder.layer.0.output.LayerNorm.beta"), "bert.encoder.layer.0.output.LayerNorm.bias");
  EXPECT_EQ(canonical_bert_name("pooler.dense.bias"), "bert.pooler.dense.bias");
  EXPECT_EQ(canonical_bert_name("qa_outputs.weight"), "qa_outputs.weight");
  EXPECT_EQ(canonical_bert_name("bert.encoder.layer.0.output.dense.weight"),
            "bert.encoder.layer.0.output.dense.weight");
}

TEST(BertTensors, OtherHeadsAndBuffersAreIgnored) {
  const data::TensorNaming naming = bert_tensor_naming();
  for (const auto* name : {"cls.predictions.bias", "bert.pooler.dense.bias", "bert.embeddings.position_ids",
                           "classifier.weight", "score.weight"}) {
    EXPECT_TRUE(naming.is_ignored(name)) << name;
  }
  for (const auto* name : {"qa_outputs.bias", "bert.encoder.layer.0.output.dense.bias", "classifiers.weight"}) {
    EXPECT_FALSE(naming.is_ignored(name)) << name;
  }
}

}  // namespace
}  // namespace mylos::families
