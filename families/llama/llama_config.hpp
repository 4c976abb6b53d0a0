#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/python_json.hpp"

namespace mylos::data {
class PretrainedModel;
}

/// The configuration of a Llama in Hugging Face's config.json.
namespace mylos::families {

/// The content of rope_scaling, or of its equivalent in rope_parameters.
struct RopeScaling {
  enum class Type { none, linear, llama3 } type = Type::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;  ///< this and the next two: only for llama3
  double high_freq_factor = 4.0;
  std::size_t original_max_position_embeddings = 0;

  bool operator==(const RopeScaling&) const = default;
};

/// Names and defaults match Hugging Face's LlamaConfig. The six sizes without a default are required in the file.
struct LlamaConfig {
  std::size_t vocab_size = 0;
  std::size_t hidden_size = 0;
  std::size_t intermediate_size = 0;
  std::size_t num_hidden_layers = 0;
  std::size_t num_attention_heads = 0;
  std::size_t max_position_embeddings = 0;
  std::size_t num_key_value_heads = 0;  ///< default: num_attention_heads
  std::size_t head_dim = 0;             ///< default: hidden_size / num_attention_heads
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  double rms_norm_eps = 1e-6;
  double initializer_range = 0.02;
  bool tie_word_embeddings = false;
  std::optional<std::size_t> bos_token_id = 1;   ///< nullopt if null in the file
  std::vector<std::size_t> eos_token_ids = {2};  ///< a number or a list in the file; empty if null
  std::optional<std::size_t> pad_token_id;       ///< the embedding of this token is not trained

  bool operator==(const LlamaConfig&) const = default;
};

/// Parses the configuration in `json`, which was read from `file`. rope_theta and the scaling are read at the top level
/// (rope_scaling) and under rope_parameters, which must not contradict each other. Throws std::runtime_error with the
/// file, the key, its value and the supported values for another model type or activation, biases, dropout, other types
/// of scaling, or impossible sizes.
LlamaConfig parse_llama_config(const Json& json, const std::string& file);

/// Reads config.json. Errors as for parse_llama_config.
LlamaConfig read_llama_config(const std::filesystem::path& path);
LlamaConfig read_llama_config(const data::PretrainedModel& model);

/// Returns the config.json of a LlamaForCausalLM that transformers can load. `dtype` is the type of its weights, such
/// as "float32".
OrderedJson llama_config_json(const LlamaConfig& config, std::string_view dtype = "float32");

}  // namespace mylos::families
