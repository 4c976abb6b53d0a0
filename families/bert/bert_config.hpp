#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/json.hpp"
#include "core/base/python_json.hpp"

namespace mylos::data {
class PretrainedModel;
}

/// The configuration of a BERT model in Hugging Face's config.json.
namespace mylos::families {

/// Names and defaults match Hugging Face's BertConfig. The six sizes without a default are required in the file.
struct BertConfig {
  std::size_t vocab_size = 0;
  std::size_t hidden_size = 0;
  std::size_t num_hidden_layers = 0;
  std::size_t num_attention_heads = 0;
  std::size_t intermediate_size = 0;
  std::size_t max_position_embeddings = 0;
  std::size_t type_vocab_size = 2;
  std::optional<std::size_t> pad_token_id = 0;  ///< nullopt if null in the file: no token is padding
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double layer_norm_eps = 1e-12;
  double initializer_range = 0.02;

  bool operator==(const BertConfig&) const = default;
};

/// Parses the configuration in `json`, which was read from `file`. Throws std::runtime_error with the file, the key,
/// its value and the supported values for another model type, impossible sizes, another activation or relative position
/// embeddings.
BertConfig parse_bert_config(const Json& json, const std::string& file);

/// Reads config.json. Errors as for parse_bert_config.
BertConfig read_bert_config(const std::filesystem::path& path);
BertConfig read_bert_config(const data::PretrainedModel& model);

/// Returns the config.json of a BertForQuestionAnswering that transformers can load.
OrderedJson bert_config_json(const BertConfig& config);

}  // namespace mylos::families
