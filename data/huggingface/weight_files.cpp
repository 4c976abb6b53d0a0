#include "data/huggingface/weight_files.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.hpp"
#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/base/printable.hpp"

namespace mylos::data {
namespace {

/// Cloning undoes shared storage, which safetensors refuses.
constexpr std::string_view convert_command =
    "python3 -c \"import torch, safetensors.torch as s; "
    "w = torch.load('pytorch_model.bin', map_location='cpu', weights_only=True); "
    "s.save_file({k: v.clone().contiguous() for k, v in w.items()}, 'model.safetensors', metadata={'format': 'pt'})\"";

[[noreturn]] void fail_without_weights(const std::filesystem::path& directory) {
  for (const auto* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!std::filesystem::exists(directory / name)) continue;
    fail(fmt::format("{} has only {}, a Python pickle; convert it once, in that directory: {}", directory.string(),
                     name, convert_command));
  }
  fail(fmt::format("{} has no model.safetensors", directory.string()));
}

/// The shard of each tensor, by the names of the index.
std::map<std::string, std::string> read_weight_map(const std::filesystem::path& index) {
  const auto json = read_json(index);
  const bool has_map = json.is_object() && json.contains("weight_map") && json["weight_map"].is_object();
  ensure(has_map, fmt::format("{}: no object \"weight_map\"", index.string()));
  std::map<std::string, std::string> shards;
  for (const auto& [name, shard] : json["weight_map"].items()) {
    if (!shard.is_string())
      fail(fmt::format("{}: the file of \"{}\" is not a string", index.string(), printable(name)));
    shards[name] = shard.get<std::string>();
    if (shards[name].empty() || shards[name].find('/') != std::string::npos) {
      fail(fmt::format("{}: \"{}\" is in \"{}\", which is not a file's name in this directory", index.string(),
                       printable(name), printable(shards[name])));
    }
  }
  return shards;
}

}  // namespace

WeightFiles::WeightFiles(const std::filesystem::path& directory, CanonicalName canonical) : canonical_(canonical) {
  if (std::filesystem::exists(directory / "model.safetensors")) {
    open_single(directory / "model.safetensors");
  } else if (std::filesystem::exists(directory / "model.safetensors.index.json")) {
    open_shards(directory / "model.safetensors.index.json");
  } else {
    fail_without_weights(directory);
  }
}

void WeightFiles::open_single(const std::filesystem::path& path) {
  const auto& file = *files_.emplace_back(std::make_unique<SafetensorsFile>(path));
  for (const auto& tensor : file.tensors()) {
    const std::string name = canonical_ == nullptr ? tensor.name : canonical_(tensor.name);
    const auto [place, is_new] = entries_.try_emplace(name, WeightEntry{&file, &tensor});
    if (is_new) continue;
    const auto& first = place->second;
    fail(fmt::format("{}: tensor \"{}\" is also there as \"{}\" in {}", path.string(), printable(tensor.name),
                     printable(first.tensor->name), first.file->path().filename().string()));
  }
}

void WeightFiles::open_shards(const std::filesystem::path& index) {
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [name, shard] : read_weight_map(index)) {
    if (!opened.contains(shard)) {
      open_single(index.parent_path() / shard);
      opened[shard] = files_.back().get();
    }
    if (opened[shard]->find(name) == nullptr) {
      fail(fmt::format("{}: \"{}\" should be in {}, which has no such tensor", index.string(), printable(name),
                       printable(shard)));
    }
  }
}

}  // namespace mylos::data
