#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/huggingface/safetensors.hpp"

/// The safetensors file or files that hold a model directory's weights.
namespace mylos::data {

/// The name by which a caller knows the tensor that a file calls `name`.
using CanonicalName = std::string (*)(std::string_view name);

/// What a model family's weight files may call its tensors.
struct TensorNaming {
  std::string_view model;                               ///< in messages, with its article: "a BERT"
  CanonicalName canonical = nullptr;                    ///< null: tensors are known by the names in the files
  bool (*is_ignored)(std::string_view name) = nullptr;  ///< of a canonical name nobody wants; null: none is ignored
};

/// One tensor of the weights: the file it is in, and how that file calls and describes it.
struct WeightEntry {
  const SafetensorsFile* file;
  const TensorInfo* tensor;
};

/// The open weight files of a model directory: model.safetensors, or the shards of model.safetensors.index.json.
class WeightFiles {
 public:
  /// Throws std::runtime_error naming what is missing, damaged or contradictory; where there is only
  /// pytorch_model.bin the message has the command that converts it.
  explicit WeightFiles(const std::filesystem::path& directory, CanonicalName canonical = nullptr);

  /// All tensors by canonical name.
  const std::map<std::string, WeightEntry>& entries() const { return entries_; }

 private:
  void open_single(const std::filesystem::path& path);
  void open_shards(const std::filesystem::path& index);

  CanonicalName canonical_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, WeightEntry> entries_;
};

}  // namespace mylos::data
