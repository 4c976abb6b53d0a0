#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "data/huggingface/safetensors.hpp"

/// The safetensors file or files that hold a model directory's weights.
namespace mylos::data {

/// How a model directory calls its weights: one file, or the index of several.
inline constexpr const char* weights_file = "model.safetensors";
inline constexpr const char* weights_index_file = "model.safetensors.index.json";

/// The name by which a caller knows the tensor that a file calls `name`.
using CanonicalName = std::string (*)(std::string_view name);

/// What a model family's weight files may call its tensors.
struct TensorNaming {
  std::string_view model;                               ///< in messages, with its article: "a BERT"
  CanonicalName canonical = nullptr;                    ///< null: tensors are known by the names in the files
  bool (*is_ignored)(std::string_view name) = nullptr;  ///< of a canonical name nobody wants; null: none is ignored

  bool ignores(std::string_view name) const { return is_ignored != nullptr && is_ignored(name); }
};

/// One tensor of the weights: the file it is in, and how that file calls and describes it.
struct WeightEntry {
  const SafetensorsFile* file;
  const TensorInfo* tensor;
};

/// Whether `name` is that of a file in a directory: no path, and not the directory itself or the one above.
bool is_file_name(std::string_view name);

/// Whether a model directory has weights in any form, be it one that cannot be read.
bool has_weight_files(const std::filesystem::path& directory);

/// The open weight files of a model directory: model.safetensors, or the shards of model.safetensors.index.json.
class WeightFiles {
 public:
  /// Throws std::runtime_error naming file and tensor of what is missing, damaged or contradictory: shards hold the
  /// tensors that the index says, each once. A shard may be a symbolic link, as in the hub's cache. Where there is
  /// only pytorch_model.bin the message has the command that converts it.
  explicit WeightFiles(const std::filesystem::path& directory, CanonicalName canonical = nullptr);

  /// All tensors by canonical name; of shards those that the index names.
  const std::map<std::string, WeightEntry>& entries() const { return entries_; }
  /// Tensors that a shard has and the index does not name.
  const std::vector<WeightEntry>& unnamed() const { return unnamed_; }
  /// Throws std::runtime_error about the first of them that a model does not ignore.
  void check_unnamed(const TensorNaming& naming) const;
  std::string canonical_name(const TensorInfo& tensor) const;
  /// The type that most bytes of the tensors have, of those of floating-point numbers; empty where there are none.
  std::optional<Precision> precision() const;

 private:
  void add(const SafetensorsFile& file, const TensorInfo& tensor);
  void open_single(const std::filesystem::path& path);
  void open_shards(const std::filesystem::path& index);

  CanonicalName canonical_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, WeightEntry> entries_;
  std::vector<WeightEntry> unnamed_;
};

/// The files that model.safetensors.index.json at `index` names. Throws std::runtime_error where it names none, or one
/// outside its directory.
std::set<std::string> shard_files(const std::filesystem::path& index);

}  // namespace mylos::data
