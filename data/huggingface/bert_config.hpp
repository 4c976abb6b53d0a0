#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/json.hpp"
#include "core/base/python_json.hpp"

/// The configuration of a BERT model as Hugging Face's config.json holds it.
namespace mylos::data {

class PretrainedModel;

/// Names and defaults are Hugging Face's BertConfig's; the six sizes without a default must be in the file.
struct BertConfig {
  std::size_t vocab_size = 0;
  std::size_t hidden_size = 0;
  std::size_t num_hidden_layers = 0;
  std::size_t num_attention_heads = 0;
  std::size_t intermediate_size = 0;
  std::size_t max_position_embeddings = 0;
  std::size_t type_vocab_size = 2;
  std::optional<std::size_t> pad_token_id = 0;  ///< nullopt: null in the file, no token is padding
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double layer_norm_eps = 1e-12;
  double initializer_range = 0.02;

  bool operator==(const BertConfig&) const = default;
};

/// The configuration in `json`, which came from `file`. Throws std::runtime_error naming the file, the key, its value
/// and what is supported: another model type, sizes that cannot be, another activation, relative positions.
BertConfig parse_bert_config(const Json& json, const std::string& file);

/// Reads config.json; errors as parse_bert_config.
BertConfig read_bert_config(const std::filesystem::path& path);
BertConfig read_bert_config(const PretrainedModel& model);

/// The config.json of a BertForQuestionAnswering that transformers loads.
OrderedJson bert_config_json(const BertConfig& config);

}  // namespace mylos::data
