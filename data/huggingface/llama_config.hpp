#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/python_json.hpp"

/// The configuration of a Llama as Hugging Face's config.json holds it.
namespace mylos::data {

class PretrainedModel;

/// rope_scaling, or what rope_parameters says of it.
struct RopeScaling {
  enum class Type { none, linear, llama3 } type = Type::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;  ///< of llama3, as the next two
  double high_freq_factor = 4.0;
  std::size_t original_max_position_embeddings = 0;

  bool operator==(const RopeScaling&) const = default;
};

/// Names and defaults are Hugging Face's LlamaConfig's; the six sizes without a default must be in the file.
struct LlamaConfig {
  std::size_t vocab_size = 0;
  std::size_t hidden_size = 0;
  std::size_t intermediate_size = 0;
  std::size_t num_hidden_layers = 0;
  std::size_t num_attention_heads = 0;
  std::size_t max_position_embeddings = 0;
  std::size_t num_key_value_heads = 0;  ///< where the file has none, num_attention_heads
  std::size_t head_dim = 0;             ///< where the file has none, hidden_size / num_attention_heads
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  double rms_norm_eps = 1e-6;
  double initializer_range = 0.02;
  bool tie_word_embeddings = false;
  std::optional<std::size_t> bos_token_id = 1;   ///< nullopt: null in the file
  std::vector<std::size_t> eos_token_ids = {2};  ///< one, or a list in the file; empty: null
  std::optional<std::size_t> pad_token_id;       ///< its embedding is not trained

  bool operator==(const LlamaConfig&) const = default;
};

/// The configuration in `json`, which came from `file`. rope_theta and the scaling are read at the top level
/// (rope_scaling) and under rope_parameters, which must not contradict each other. Throws std::runtime_error naming the
/// file, the key, its value and what is supported: another model type or activation, biases, dropout, other types of
/// scaling, sizes that cannot be.
LlamaConfig parse_llama_config(const Json& json, const std::string& file);

/// Reads config.json; errors as parse_llama_config.
LlamaConfig read_llama_config(const std::filesystem::path& path);
LlamaConfig read_llama_config(const PretrainedModel& model);

/// The config.json of a LlamaForCausalLM that transformers loads; `dtype` is that of its weights: "float32".
OrderedJson llama_config_json(const LlamaConfig& config, std::string_view dtype = "float32");

}  // namespace mylos::data
