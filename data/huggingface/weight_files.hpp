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

/// The name today's transformers gives the tensor `name`: LayerNorm.gamma is .weight, .beta is .bias, and a bare
/// encoder's "embeddings." and "encoder." stand below "bert.".
std::string canonical_tensor_name(std::string_view name);

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
  explicit WeightFiles(const std::filesystem::path& directory);

  /// All tensors by canonical name.
  const std::map<std::string, WeightEntry>& entries() const { return entries_; }

 private:
  void open_single(const std::filesystem::path& path);
  void open_shards(const std::filesystem::path& index);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, WeightEntry> entries_;
};

}  // namespace mylos::data
