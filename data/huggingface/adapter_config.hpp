#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/files/file_reader.hpp"
#include "core/base/notice.hpp"
#include "core/base/text/python_json.hpp"

/// Directories with a LoRA adapter, as PEFT writes and reads them: adapter_config.json and adapter_model.safetensors.
namespace mylos::data {

inline constexpr const char* adapter_config_file = "adapter_config.json";
inline constexpr const char* adapter_weights_file = "adapter_model.safetensors";

inline constexpr double most_adapter_alpha = 1e30;  ///< lora_alpha is below

/// A LoRA adapter as adapter_config.json describes it. A module is named by its whole name
/// ("model.layers.0.self_attn.q_proj") or by the end of it after a dot ("q_proj").
struct AdapterConfig {
  std::string file = adapter_config_file;  ///< named in messages; empty: settings of a run gave the values
  std::string base;                        ///< base_model_name_or_path; may be empty
  std::string task_type;                   ///< "CAUSAL_LM", "SEQ_CLS", "QUESTION_ANS", ...; may be empty
  std::size_t rank = 8;                    ///< r
  double alpha = 8.0;                      ///< lora_alpha
  double dropout = 0.0;                    ///< lora_dropout
  bool rslora = false;                     ///< use_rslora
  std::vector<std::string> targets;        ///< target_modules as a list
  std::string pattern;                   ///< target_modules as a string: "all-linear" or an expression for whole names
  std::vector<std::string> excluded;     ///< exclude_modules as a list
  std::string excluded_pattern;          ///< exclude_modules as a string
  std::vector<std::string> trained;      ///< modules_to_save: modules trained whole
  std::vector<std::size_t> layers;       ///< layers_to_transform: layers in which `targets` count; empty: all
  std::vector<std::string> layer_lists;  ///< layers_pattern: expressions for the name before a layer's number
  std::vector<std::pair<std::string, std::size_t>> ranks;  ///< rank_pattern: the first expression that matches counts
  std::vector<std::pair<std::string, double>> alphas;      ///< alpha_pattern
};

/// Returns what messages call a key: the file and the key, or the setting that gave its value.
std::string key_text(const AdapterConfig& config, std::string_view key);

/// Returns whether `directory` has an adapter_config.json.
bool is_adapter_directory(const std::filesystem::path& directory);

/// Reads adapter_config.json. Throws std::runtime_error with the file, the key and its value if the value is wrong, or
/// if PEFT computes something else with it than LoRA, such as DoRA. `notice` gets a line about unknown keys.
AdapterConfig read_adapter_config(const FileReader& files, const std::filesystem::path& directory,
                                  const Notice& notice);

/// Returns adapter_config.json with the keys and the order of PEFT 0.21, which PEFT 0.17 and later read.
OrderedJson adapter_config_json(const AdapterConfig& config);

}  // namespace mylos::data
