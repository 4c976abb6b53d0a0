#pragma once

#include <filesystem>
#include <span>
#include <string_view>

/// The files in the directories of each family of models, which `mylos fetch` gets.
namespace mylos::data {

struct ModelFamily {
  std::string_view model_type;                 ///< in config.json
  std::string_view model;                      ///< in messages, with its article: "a BERT model"
  std::span<const std::string_view> needed;    ///< files beside config.json and the weights
  std::span<const std::string_view> optional;  ///< files that only some of its directories have
  /// Throws std::runtime_error where config.json is none that Mylos trains.
  void (*check_config)(const std::filesystem::path& file);
  /// Throws std::runtime_error where the directory is not whole: configuration, tokenizer, structure of the weights.
  void (*check)(const std::filesystem::path& directory);
};

/// The family that config.json of `directory` names. Throws std::runtime_error naming the file, its model_type and the
/// families that there are.
const ModelFamily& find_model_family(const std::filesystem::path& directory);

}  // namespace mylos::data
