#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/files/file_reader.hpp"
#include "core/base/text/python_json.hpp"
#include "data/tokenizer/tokenizer.hpp"

/// The files of a family of models in Hugging Face's directories.
namespace mylos::data {

class PretrainedModel;
struct ModelFile;

/// A published model whose sizes are built in.
struct KnownModel {
  std::string_view name;     ///< "bert-base"
  std::string_view fetched;  ///< name of a model of these sizes with weights, for `mylos fetch` and --model
  std::string_view config;   ///< what a config.json says of its sizes
};

struct ModelFamily {
  std::string_view model_type;                 ///< in config.json
  std::string_view model;                      ///< in messages, with its article: "a BERT model"
  std::span<const KnownModel> known;           ///< for commands that need no weights
  std::span<const std::string_view> optional;  ///< files beside config.json and the weights that only some models have
  /// Throws std::runtime_error if config.json describes a model that Mylos cannot train.
  void (*check_config)(const std::filesystem::path& file);
  /// Throws std::runtime_error if the directory is incomplete: configuration, tokenizer, or structure of the weights.
  void (*check)(const std::filesystem::path& directory);
  /// Returns the tokenizer of a directory; null if it has none. Throws std::runtime_error with the file if it cannot be
  /// read or does not fit the model. Null for a family without tokenizers.
  std::unique_ptr<Tokenizer> (*tokenizer)(const FileReader& files, const std::filesystem::path& directory);
  std::string_view tokenizer_file;  ///< that `tokenizer` reads without a tokenizer.json
  std::string_view architecture;    ///< beginning of its classes' names in transformers: "Bert"
  /// Return config.json and the tokenizer's files of a model that training has made of `model`. Null for families whose
  /// tasks write them.
  OrderedJson (*config_json)(const PretrainedModel& model);
  std::vector<ModelFile> (*tokenizer_files)(const FileReader& files, const PretrainedModel& model);
};

/// Returns the family of the model in a directory. Throws std::runtime_error if there is none.
using FindModelFamily = const ModelFamily& (*)(const FileReader& files, const std::filesystem::path& directory);

}  // namespace mylos::data
