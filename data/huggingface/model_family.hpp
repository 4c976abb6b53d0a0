#pragma once

#include <filesystem>
#include <span>
#include <string_view>

/// The files of a family of models in Hugging Face's directories.
namespace mylos::data {

struct ModelFamily {
  std::string_view model_type;                 ///< in config.json
  std::string_view model;                      ///< in messages, with its article: "a BERT model"
  std::span<const std::string_view> needed;    ///< required files beside config.json and the weights
  std::span<const std::string_view> optional;  ///< files that only some models have
  /// Throws std::runtime_error if config.json describes a model that Mylos cannot train.
  void (*check_config)(const std::filesystem::path& file);
  /// Throws std::runtime_error if the directory is incomplete: configuration, tokenizer, or structure of the weights.
  void (*check)(const std::filesystem::path& directory);
};

/// Returns the family of the model in a directory. Throws std::runtime_error if there is none.
using FindModelFamily = const ModelFamily& (*)(const std::filesystem::path& directory);

}  // namespace mylos::data
