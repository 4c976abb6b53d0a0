#include "families/bert/bert_config.hpp"

#include <fmt/format.h>

#include <string>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/pretrained.hpp"

namespace mylos::families {
namespace {

/// Upper limits, far above any BERT. A file beyond them is damaged and would request more memory than any machine has.
constexpr std::size_t most_tokens = std::size_t{1} << 24;
constexpr std::size_t largest_width = std::size_t{1} << 17;
constexpr std::size_t most_layers = 1024;
constexpr std::size_t most_positions = std::size_t{1} << 20;

void check_together(const BertConfig& config, const std::string& file) {
  ensure(config.hidden_size % config.num_attention_heads == 0,
         fmt::format("{}: hidden_size = {} is not a multiple of num_attention_heads = {}", file, config.hidden_size,
                     config.num_attention_heads));
  const std::size_t padding = config.pad_token_id.value_or(0);
  ensure(padding < config.vocab_size,
         fmt::format("{}: pad_token_id = {} is not below vocab_size = {}", file, padding, config.vocab_size));
}

}  // namespace

BertConfig parse_bert_config(const Json& json, const std::string& file) {
  const data::ConfigReader reader(json, file, "a BERT model");
  reader.check_model_type("bert");
  BertConfig config;
  reader.read_size("vocab_size", 1, most_tokens, config.vocab_size, true);
  reader.read_size("hidden_size", 1, largest_width, config.hidden_size, true);
  reader.read_size("num_hidden_layers", 1, most_layers, config.num_hidden_layers, true);
  reader.read_size("num_attention_heads", 1, largest_width, config.num_attention_heads, true);
  reader.read_size("intermediate_size", 1, largest_width, config.intermediate_size, true);
  reader.read_size("max_position_embeddings", 1, most_positions, config.max_position_embeddings, true);
  reader.read_size("type_vocab_size", 2, most_tokens, config.type_vocab_size, false);
  if (reader.is_null("pad_token_id")) config.pad_token_id.reset();
  if (config.pad_token_id) reader.read_size("pad_token_id", 0, most_tokens, *config.pad_token_id, false);
  reader.read_number("hidden_dropout_prob", false, 1.0, config.hidden_dropout_prob);
  reader.read_number("attention_probs_dropout_prob", false, 1.0, config.attention_probs_dropout_prob);
  reader.read_number("layer_norm_eps", true, 0.1, config.layer_norm_eps);
  reader.read_number("initializer_range", false, 10.0, config.initializer_range);
  reader.read_choice("hidden_act", "gelu", "gelu_python");
  reader.read_choice("position_embedding_type", "absolute", "absolute");
  reader.refuse_true("is_decoder", " (an encoder)");
  reader.refuse_true("add_cross_attention", " (an encoder)");
  check_together(config, file);
  return config;
}

BertConfig read_bert_config(const std::filesystem::path& path) {
  return parse_bert_config(read_json(path), path.string());
}

BertConfig read_bert_config(const data::PretrainedModel& model) {
  return parse_bert_config(Json(model.config()), model.config_path().string());
}

OrderedJson bert_config_json(const BertConfig& config) {
  OrderedJson json;
  json["architectures"] = {"BertForQuestionAnswering"};
  json["model_type"] = "bert";
  json["vocab_size"] = config.vocab_size;
  json["hidden_size"] = config.hidden_size;
  json["num_hidden_layers"] = config.num_hidden_layers;
  json["num_attention_heads"] = config.num_attention_heads;
  json["intermediate_size"] = config.intermediate_size;
  json["max_position_embeddings"] = config.max_position_embeddings;
  json["type_vocab_size"] = config.type_vocab_size;
  json["pad_token_id"] = config.pad_token_id ? OrderedJson(*config.pad_token_id) : OrderedJson();
  json["hidden_act"] = "gelu";
  json["hidden_dropout_prob"] = config.hidden_dropout_prob;
  json["attention_probs_dropout_prob"] = config.attention_probs_dropout_prob;
  json["layer_norm_eps"] = config.layer_norm_eps;
  json["initializer_range"] = config.initializer_range;
  json["position_embedding_type"] = "absolute";
  json["torch_dtype"] = "float32";
  return json;
}

}  // namespace mylos::families
