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

/// The safetensors file or files with the weights of a model directory.
namespace mylos::data {

/// File names of the weights in a model directory: a single file, or the index of several.
inline constexpr const char* weights_file = "model.safetensors";
inline constexpr const char* weights_index_file = "model.safetensors.index.json";

/// Names of the files of a directory with weights; those of a model by default.
struct DirectoryNames {
  const char* config = "config.json";
  const char* weights = weights_file;
  const char* index = weights_index_file;  ///< null: the weights are always a single file
};

/// Returns the canonical name of the tensor that a file calls `name`.
using CanonicalName = std::string (*)(std::string_view name);

/// The names of a model family's tensors in weight files.
struct TensorNaming {
  std::string_view model;                               ///< for messages, with its article: "a BERT"
  CanonicalName canonical = nullptr;                    ///< null: the names in the files are canonical
  bool (*is_ignored)(std::string_view name) = nullptr;  ///< true for unused tensors, by canonical name; null: none are
                                                        ///< ignored
  bool (*is_other_head)(std::string_view name) = nullptr;  ///< true for ignored tensors of heads for other tasks

  std::string_view copy = {}, copied = {};  ///< an unused tensor that must equal another, such as a tied head

  bool ignores(std::string_view name) const {
    return (!copy.empty() && name == copy) || (is_ignored != nullptr && is_ignored(name));
  }
};

/// One tensor of the weights: its file, and its name and description in that file.
struct WeightEntry {
  const SafetensorsFile* file;
  const TensorInfo* tensor;
};

/// True if `name` is a plain file name: not a path, "." or "..".
bool is_file_name(std::string_view name);

/// True if a model directory has weights in any format, even one that cannot be read.
bool has_weight_files(const FileReader& files, const std::filesystem::path& directory);

/// True if `file` has the name of weights that PyTorch pickled: "resnet50-0676ba61.pth".
bool is_pickle(const std::filesystem::path& file);
/// Returns the command that converts such a file, and is run in its directory.
std::string convert_command(const std::filesystem::path& file);

/// The weight files of a directory: model.safetensors, or the shards of model.safetensors.index.json.
class WeightFiles {
 public:
  /// Throws std::runtime_error with the file and tensor if anything is missing, damaged or contradictory: the shards
  /// must contain the tensors that the index lists, each once. A shard may be a symbolic link, as in the hub's cache.
  /// If there is only a Python pickle, the message contains the command that converts it.
  WeightFiles(const FileReader& files, const std::filesystem::path& directory, CanonicalName canonical = nullptr,
              const DirectoryNames& names = {});

  const DirectoryNames& names() const { return names_; }
  /// Returns all tensors by canonical name; in a sharded model, those that the index names.
  const std::map<std::string, WeightEntry>& entries() const { return entries_; }
  /// Returns the tensors that are in a shard but not in the index.
  const std::vector<WeightEntry>& unnamed() const { return unnamed_; }
  /// Throws std::runtime_error about the first unnamed tensor that `naming` does not ignore.
  void check_unnamed(const TensorNaming& naming) const;
  std::string canonical_name(const TensorInfo& tensor) const;
  /// Returns the floating-point type with the most bytes, or nullopt if no tensor has a floating-point type.
  std::optional<Precision> precision() const;

 private:
  void add(const SafetensorsFile& file, const TensorInfo& tensor);
  void open_single(const FileReader& files, const std::filesystem::path& path);
  void open_shards(const FileReader& files, const std::filesystem::path& index);

  CanonicalName canonical_;
  DirectoryNames names_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, WeightEntry> entries_;
  std::vector<WeightEntry> unnamed_;
};

/// Returns the files that model.safetensors.index.json at `index` names. Throws std::runtime_error if it names none, or
/// one outside its directory.
std::set<std::string> shard_files(const std::filesystem::path& index);

}  // namespace mylos::data
