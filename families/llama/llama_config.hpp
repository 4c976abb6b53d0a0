#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/base/text/python_json.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/weight_files.hpp"
#include "families/llama/llama_shape.hpp"

/// The configuration of a Llama in Hugging Face's config.json.
namespace mylos::families {

/// A member of the family: its name, and the defaults of its configuration in transformers.
struct LlamaMember {
  std::string_view model_type;
  std::string_view model;         ///< in messages, with its article
  std::string_view architecture;  ///< beginning of its classes' names in transformers
  enum class Biases { chosen, of_qkv, none } biases = Biases::none;  ///< chosen: attention_bias gives q, k, v and o one
  bool has_mlp_bias = false;                                         ///< mlp_bias gives the feed-forward layers one
  bool has_head_norms = false;
  enum class Window { none, always, chosen } window = Window::none;  ///< chosen: use_sliding_window, above some layers
  std::size_t key_value_heads = 0;                                   ///< unless given; 0: as many as query heads
  std::size_t head_size = 0;                                         ///< unless given; 0: hidden / heads
  bool has_tokens = false;  ///< BOS 1 and EOS 2 unless given, and texts begin with BOS
};

/// Touvron et al. 2023, Jiang et al. 2023, Yang et al. 2024 and 2025.
inline constexpr std::array llama_members{LlamaMember{.model_type = "llama",
                                                      .model = "a Llama",
                                                      .architecture = "Llama",
                                                      .biases = LlamaMember::Biases::chosen,
                                                      .has_mlp_bias = true,
                                                      .has_tokens = true},
                                          LlamaMember{.model_type = "mistral",
                                                      .model = "a Mistral",
                                                      .architecture = "Mistral",
                                                      .window = LlamaMember::Window::always,
                                                      .key_value_heads = 8,
                                                      .has_tokens = true},
                                          LlamaMember{.model_type = "qwen2",
                                                      .model = "a Qwen2",
                                                      .architecture = "Qwen2",
                                                      .biases = LlamaMember::Biases::of_qkv,
                                                      .window = LlamaMember::Window::chosen,
                                                      .key_value_heads = 32},
                                          LlamaMember{.model_type = "qwen3",
                                                      .model = "a Qwen3",
                                                      .architecture = "Qwen3",
                                                      .biases = LlamaMember::Biases::chosen,
                                                      .has_head_norms = true,
                                                      .window = LlamaMember::Window::chosen,
                                                      .key_value_heads = 32,
                                                      .head_size = 128}};

/// Returns the member of this model type. Errors: std::invalid_argument if there is none.
const LlamaMember& llama_member(std::string_view model_type);

/// Reads a config.json with the defaults of the member's configuration in Hugging Face's transformers.
/// rope_theta and the scaling are read at the top level (rope_scaling) and under rope_parameters, which must not
/// contradict each other. Throws std::runtime_error with the file, the key, its value and the supported values for
/// another model type or activation, dropout, other types of scaling or order of windows, or impossible sizes.
LlamaShape read_llama_config(const data::ModelConfig& from);

/// Returns the config.json of the member's ForCausalLM that transformers can load. `dtype` is the type of its weights,
/// such as "float32".
OrderedJson llama_config_json(const LlamaShape& config, std::string_view dtype = "float32");

/// Returns the name of tensor `name` in a LlamaForCausalLM: names of a bare LlamaModel get the prefix "model.".
std::string canonical_llama_name(std::string_view name);

/// Returns the naming based on canonical_llama_name. It ignores buffers that hold no weights; with `tied` embeddings,
/// lm_head.weight is a copy of theirs, which some files store.
data::TensorNaming llama_tensor_naming(bool tied);

}  // namespace mylos::families
