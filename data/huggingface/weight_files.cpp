#include "data/huggingface/weight_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/printable.hpp"

namespace mylos::data {
namespace {

constexpr const char* pickle_file = "pytorch_model.bin";

/// Returns the name of a pickle with weights in `directory`; empty if there is none.
std::string find_pickle(const FileReader& files, const std::filesystem::path& directory) {
  for (const char* name : {pickle_file, "pytorch_model.bin.index.json"}) {
    if (is_present(directory / name)) return name;
  }
  std::error_code unreadable;  // reported by the call that reads the directory
  if (!std::filesystem::is_directory(directory, unreadable)) return {};
  for (const DirectoryEntry& entry : files.list_directory(directory)) {
    if (is_pickle(entry.name)) return entry.name;
  }
  return {};
}

[[noreturn]] void fail_without_weights(const FileReader& files, const std::filesystem::path& directory,
                                       const DirectoryNames& names) {
  const std::string pickle = names.index == nullptr ? "" : find_pickle(files, directory);
  if (pickle.empty()) fail(fmt::format("{} has no {}", directory.string(), names.weights));
  fail(fmt::format("{} has only {}, a Python pickle; convert it once, in that directory: {}", directory.string(),
                   pickle, convert_command(pickle.ends_with(".json") ? pickle_file : pickle)));
}

/// Returns the tensors of each shard, from the index.
std::map<std::string, std::set<std::string>> read_weight_map(const FileReader& files,
                                                             const std::filesystem::path& index) {
  const auto json = read_json(files, index);
  const bool has_map = json.is_object() && json.contains("weight_map") && json["weight_map"].is_object();
  ensure(has_map, fmt::format("{}: no object \"weight_map\"", index.string()));
  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [name, shard] : json["weight_map"].items()) {
    if (!shard.is_string())
      fail(fmt::format("{}: the file of \"{}\" is not a string", index.string(), printable(name)));
    const auto file = shard.get<std::string>();
    if (!is_file_name(file)) {
      fail(fmt::format("{}: \"{}\" is in \"{}\", which is not a file's name in this directory", index.string(),
                       printable(name), printable(file)));
    }
    shards[file].insert(name);
  }
  return shards;
}

/// Throws if a shard lacks a tensor that the index assigns to it.
void check_shard(const SafetensorsFile& file, const std::set<std::string>& named, const std::filesystem::path& index) {
  for (const std::string& name : named) {
    if (file.find(name) != nullptr) continue;
    fail(fmt::format("{}: \"{}\" should be in {}, which has no such tensor", index.string(), printable(name),
                     printable(file.path().filename().string())));
  }
}

/// Returns whether a file exists, without a look at the disk if its header is known from another process.
bool is_weight_file(const FileReader& files, const std::filesystem::path& path) {
  return files.has_values(path) || is_present(path);
}

[[noreturn]] void fail_twice(const WeightEntry& entry, const WeightEntry& first) {
  fail(fmt::format("{} is also stored as \"{}\" in {}", tensor_subject(entry.file->path().string(), entry.tensor->name),
                   printable(first.tensor->name), first.file->path().filename().string()));
}

}  // namespace

bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

bool has_weight_files(const FileReader& files, const std::filesystem::path& directory) {
  return is_present(directory / weights_file) || is_present(directory / weights_index_file) ||
         !find_pickle(files, directory).empty();
}

bool is_pickle(const std::filesystem::path& file) {
  return file.extension() == ".pth" || file.extension() == ".ckpt" || file.filename() == pickle_file;
}

// Clones tensors because safetensors rejects shared storage. Lightning's files have the weights as one entry, and
// PyTorch's DDP puts "module." before each name.
std::string convert_command(const std::filesystem::path& file) {
  return fmt::format(
      "python3 -c \"import torch, safetensors.torch as s; "
      "w = torch.load('{}', map_location='cpu', weights_only=True); w = w.get('state_dict', w); "
      "s.save_file({{k.removeprefix('module.'): v.clone().contiguous() for k, v in w.items()}}, "
      "'model.safetensors', metadata={{'format': 'pt'}})\"",
      printable(file.filename().string()));
}

WeightFiles::WeightFiles(const FileReader& files, const std::filesystem::path& directory, CanonicalName canonical,
                         const DirectoryNames& names)
    : canonical_(canonical), names_(names) {
  if (is_weight_file(files, directory / names.weights)) {
    open_single(files, directory / names.weights);
  } else if (names.index != nullptr && is_present(directory / names.index)) {
    open_shards(files, directory / names.index);
  } else {
    fail_without_weights(files, directory, names);
  }
}

void WeightFiles::check_unnamed(const TensorNaming& naming) const {
  for (const WeightEntry& entry : unnamed_) {
    const std::string name = canonical_name(*entry.tensor);
    if (naming.ignores(name)) continue;
    const auto named = entries_.find(name);
    if (named != entries_.end()) fail_twice(entry, named->second);
    fail(fmt::format("{} is not in {}: the file or the index belongs to another model; fetch both again",
                     tensor_subject(entry.file->path().string(), entry.tensor->name), names_.index));
  }
}

std::string WeightFiles::canonical_name(const TensorInfo& tensor) const {
  return canonical_ == nullptr ? tensor.name : canonical_(tensor.name);
}

std::optional<Precision> WeightFiles::precision() const {
  std::map<Precision, std::uint64_t> bytes;
  for (const auto& [name, entry] : entries_) {
    const std::optional<Precision> one = safetensors_precision(entry.tensor->type);
    if (one) bytes[*one] += entry.tensor->end - entry.tensor->begin;
  }
  const auto most = std::ranges::max_element(bytes, {}, &std::pair<const Precision, std::uint64_t>::second);
  return most == bytes.end() ? std::nullopt : std::optional(most->first);
}

void WeightFiles::add(const SafetensorsFile& file, const TensorInfo& tensor) {
  const WeightEntry entry{&file, &tensor};
  const auto [location, is_new] = entries_.try_emplace(canonical_name(tensor), entry);
  if (!is_new) fail_twice(entry, location->second);
}

void WeightFiles::open_single(const FileReader& files, const std::filesystem::path& path) {
  const auto& file = *files_.emplace_back(std::make_unique<SafetensorsFile>(files, path));
  for (const auto& tensor : file.tensors()) add(file, tensor);
}

void WeightFiles::open_shards(const FileReader& files, const std::filesystem::path& index) {
  for (const auto& [shard, names] : read_weight_map(files, index)) {
    const std::filesystem::path path = index.parent_path() / shard;
    if (!is_weight_file(files, path)) {
      fail(fmt::format("{}: \"{}\" is in {}, which does not exist; fetch it", index.string(), printable(*names.begin()),
                       printable(shard)));
    }
    const auto& file = *files_.emplace_back(std::make_unique<SafetensorsFile>(files, path));
    check_shard(file, names, index);
    for (const auto& tensor : file.tensors()) {
      if (names.contains(tensor.name)) {
        add(file, tensor);
      } else {
        unnamed_.push_back({&file, &tensor});
      }
    }
  }
}

std::set<std::string> shard_files(const std::filesystem::path& index) {
  std::set<std::string> files;
  for (const auto& [shard, names] : read_weight_map(FileReader(), index)) files.insert(shard);
  ensure(!files.empty(), fmt::format("{}: \"weight_map\" names no tensor", index.string()));
  return files;
}

}  // namespace mylos::data
