#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "data/huggingface/config_reader.hpp"

/// The files that `mylos fetch` downloads for each model family.
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

/// Returns the family named in config.json of `directory`. Throws std::runtime_error with the file, its model_type and
/// the supported families if there is no such family.
const ModelFamily& find_model_family(const std::filesystem::path& directory);

/// Throws std::runtime_error with the file, its model_type and architecture, and the supported families unless the
/// configuration is of the family `wanted`.
void check_model_type(const ConfigReader& reader, std::string_view wanted);

}  // namespace mylos::data
