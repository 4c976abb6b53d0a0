#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/base/text/python_json.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/model_family.hpp"
#include "families/llama/llama_shape.hpp"

/// The configuration of a Llama in Hugging Face's config.json.
namespace mylos::families {

/// The sizes of Rozière et al. 2023 (codellama), Touvron et al. 2023 (llama-2), Grattafiori et al. 2024 (llama-3) and
/// Zhang et al. 2024 (tinyllama).
inline constexpr std::array known_llamas{
    data::KnownModel{"codellama-7b", "codellama/CodeLlama-7b-hf",
                     R"({"model_type": "llama", "vocab_size": 32016, "hidden_size": 4096, "intermediate_size": 11008,
                         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
                         "max_position_embeddings": 16384, "rope_theta": 1e6, "rms_norm_eps": 1e-5})"},
    data::KnownModel{"codellama-13b", "codellama/CodeLlama-13b-hf",
                     R"({"model_type": "llama", "vocab_size": 32016, "hidden_size": 5120, "intermediate_size": 13824,
                         "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 40,
                         "max_position_embeddings": 16384, "rope_theta": 1e6, "rms_norm_eps": 1e-5})"},
    data::KnownModel{"codellama-34b", "codellama/CodeLlama-34b-hf",
                     R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 8192, "intermediate_size": 22016,
                         "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 8,
                         "max_position_embeddings": 16384, "rope_theta": 1e6, "rms_norm_eps": 1e-5})"},
    data::KnownModel{"llama-2-7b", "meta-llama/Llama-2-7b-hf",
                     R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
                         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
                         "max_position_embeddings": 4096, "rope_theta": 1e4, "rms_norm_eps": 1e-5})"},
    data::KnownModel{"llama-3-8b", "meta-llama/Meta-Llama-3-8B",
                     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
                         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
                         "max_position_embeddings": 8192, "rope_theta": 5e5, "rms_norm_eps": 1e-5})"},
    data::KnownModel{"tinyllama-1.1b", "TinyLlama/TinyLlama_v1.1",
                     R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 5632,
                         "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4,
                         "max_position_embeddings": 2048, "rope_theta": 1e4, "rms_norm_eps": 1e-5})"}};

/// Reads a config.json with the defaults of Hugging Face's LlamaConfig.
/// rope_theta and the scaling are read at the top level (rope_scaling) and under rope_parameters, which must not
/// contradict each other. Throws std::runtime_error with the file, the key, its value and the supported values for
/// another model type or activation, biases, dropout, other types of scaling, or impossible sizes.
LlamaShape read_llama_config(const data::ModelConfig& from);

/// Returns the config.json of a LlamaForCausalLM that transformers can load. `dtype` is the type of its weights, such
/// as "float32".
OrderedJson llama_config_json(const LlamaShape& config, std::string_view dtype = "float32");

}  // namespace mylos::families
