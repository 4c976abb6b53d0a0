#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/json.hpp"
#include "core/base/python_json.hpp"
#include "families/llama/llama_shape.hpp"

namespace mylos::data {
class PretrainedModel;
}

/// The configuration of a Llama in Hugging Face's config.json.
namespace mylos::families {

/// Parses the configuration in `json`, which was read from `file`, with the defaults of Hugging Face's LlamaConfig.
/// rope_theta and the scaling are read at the top level (rope_scaling) and under rope_parameters, which must not
/// contradict each other. Throws std::runtime_error with the file, the key, its value and the supported values for
/// another model type or activation, biases, dropout, other types of scaling, or impossible sizes.
LlamaShape parse_llama_config(const Json& json, const std::string& file);

/// Reads config.json. Errors as for parse_llama_config.
LlamaShape read_llama_config(const std::filesystem::path& path);
LlamaShape read_llama_config(const data::PretrainedModel& model);

/// Returns the config.json of a LlamaForCausalLM that transformers can load. `dtype` is the type of its weights, such
/// as "float32".
OrderedJson llama_config_json(const LlamaShape& config, std::string_view dtype = "float32");

}  // namespace mylos::families
