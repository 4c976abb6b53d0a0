#include "families/bert/bert_config.hpp"

#include <fmt/format.h>

#include <string>

#include "core/base/error.hpp"
#include "core/base/files/json.hpp"

namespace mylos::families {
namespace {

/// Upper limits, far above any BERT. A file beyond them is damaged and would request more memory than any machine has.
constexpr std::size_t most_tokens = std::size_t{1} << 24;
constexpr std::size_t largest_width = std::size_t{1} << 17;
constexpr std::size_t most_layers = 1024;
constexpr std::size_t most_positions = std::size_t{1} << 20;

void check_together(const BertShape& config, const std::string& file) {
  ensure(config.hidden % config.heads == 0,
         fmt::format("{}: hidden_size = {} is not a multiple of num_attention_heads = {}", file, config.hidden,
                     config.heads));
  ensure(
      config.padding_token < static_cast<std::int64_t>(config.vocabulary),
      fmt::format("{}: pad_token_id = {} is not below vocab_size = {}", file, config.padding_token, config.vocabulary));
}

void replace_suffix(std::string& name, std::string_view suffix, std::string_view replacement) {
  if (name.ends_with(suffix)) name.replace(name.size() - suffix.size(), suffix.size(), replacement);
}

/// True for heads for other tasks and buffers that hold no weights.
bool is_ignored_by_bert(std::string_view name) {
  return is_other_bert_head(name) || name.starts_with("bert.pooler.") || name.ends_with("position_ids");
}

}  // namespace

BertShape read_bert_config(const data::ModelConfig& from) {
  const data::ConfigReader reader(from, "a BERT model");
  reader.check_model_type("bert");
  BertShape config{.token_types = 2};
  reader.read_size("vocab_size", 1, most_tokens, config.vocabulary, true);
  reader.read_size("hidden_size", 1, largest_width, config.hidden, true);
  reader.read_size("num_hidden_layers", 1, most_layers, config.layers, true);
  reader.read_size("num_attention_heads", 1, largest_width, config.heads, true);
  reader.read_size("intermediate_size", 1, largest_width, config.feed_forward, true);
  reader.read_size("max_position_embeddings", 1, most_positions, config.positions, true);
  reader.read_size("type_vocab_size", 2, most_tokens, config.token_types, false);
  std::size_t padding = 0;
  reader.read_size("pad_token_id", 0, most_tokens, padding, false);
  config.padding_token = reader.is_null("pad_token_id") ? no_padding : static_cast<std::int32_t>(padding);
  reader.read_number("hidden_dropout_prob", false, 1.0, config.hidden_dropout);
  reader.read_number("attention_probs_dropout_prob", false, 1.0, config.attention_dropout);
  reader.read_number("layer_norm_eps", true, 0.1, config.layer_norm_epsilon);
  reader.read_number("initializer_range", false, 10.0, config.initializer_range);
  reader.read_choice("hidden_act", "gelu", "gelu_python");
  reader.read_choice("position_embedding_type", "absolute", "absolute");
  reader.refuse_true("is_decoder", " (an encoder)");
  reader.refuse_true("add_cross_attention", " (an encoder)");
  check_together(config, from.file);
  return config;
}

BertShape with_dropout(BertShape shape, std::optional<double> dropout) {
  if (dropout) shape.hidden_dropout = shape.attention_dropout = static_cast<float>(*dropout);
  return shape;
}

OrderedJson bert_config_json(const BertShape& config) {
  OrderedJson json;
  json["architectures"] = {"BertForQuestionAnswering"};
  json["model_type"] = "bert";
  json["vocab_size"] = config.vocabulary;
  json["hidden_size"] = config.hidden;
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.heads;
  json["intermediate_size"] = config.feed_forward;
  json["max_position_embeddings"] = config.positions;
  json["type_vocab_size"] = config.token_types;
  json["pad_token_id"] = config.padding_token == no_padding
                             ? OrderedJson()
                             : OrderedJson(static_cast<std::uint32_t>(config.padding_token));
  json["hidden_act"] = "gelu";
  json["hidden_dropout_prob"] = data::shortest_decimal(config.hidden_dropout);
  json["attention_probs_dropout_prob"] = data::shortest_decimal(config.attention_dropout);
  json["layer_norm_eps"] = data::shortest_decimal(config.layer_norm_epsilon);
  json["initializer_range"] = data::shortest_decimal(config.initializer_range);
  json["position_embedding_type"] = "absolute";
  json["torch_dtype"] = "float32";
  return json;
}

bool is_other_bert_head(std::string_view name) {
  return name.starts_with("cls.") || name.starts_with("classifier.") || name.starts_with("score.");
}

std::string canonical_bert_name(std::string_view name) {
  std::string result(name);
  replace_suffix(result, "LayerNorm.gamma", "LayerNorm.weight");
  replace_suffix(result, "LayerNorm.beta", "LayerNorm.bias");
  for (const auto* part : {"embeddings.", "encoder.", "pooler."}) {
    if (result.starts_with(part)) return "bert." + result;
  }
  return result;
}

data::TensorNaming bert_tensor_naming() {
  return {.model = "a BERT",
          .canonical = canonical_bert_name,
          .is_ignored = is_ignored_by_bert,
          .is_other_head = is_other_bert_head};
}

}  // namespace mylos::families
