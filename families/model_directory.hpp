#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/files/file_reader.hpp"
#include "data/huggingface/config_reader.hpp"
#include "families/interface/body_output.hpp"

/// Finds the model that --model names, without network access.
namespace mylos::families {

/// Returns the directory of the adapter that `given` means: that directory, the best/ of the run whose output it is, or
/// one in our cache or Hugging Face's if it is a name. Empty if it is a model or neither.
std::filesystem::path adapter_directory(const std::filesystem::path& given);

/// Resolves `model` to a model directory. It is a directory with config.json, the output directory of a run (its best/
/// is used), an adapter's directory (its base is used), or the name of either in our cache or in Hugging Face's. With
/// `checks_sums` a model in our cache is read in full and must match its fetch record; when many processes read the
/// same cache, one of them needs to do this. Throws std::runtime_error with the locations searched and how to get the
/// model.
std::filesystem::path resolve_model(const FileReader& files, const std::string& model, bool checks_sums = true);

/// Returns `name` if it is the hub's name, owner/name, of the model in `directory`; otherwise an empty text.
std::string hub_name(const FileReader& files, const std::string& name, const std::filesystem::path& directory);

/// A model whose sizes a command needs, and not its weights.
struct NamedModel {
  std::string name;                 ///< of the built-in sizes, else as the user called it
  std::string fetched;              ///< name of such a model with weights
  std::filesystem::path directory;  ///< empty for built-in sizes
  data::ModelConfig config;
};

/// Returns the built-in model called `name` of a family that gives `output` (find_known_model), else the one that
/// resolve_model finds. Errors: those of resolve_model, and std::runtime_error if config.json is no JSON.
NamedModel read_named_model(const std::string& name, BodyOutput output);

}  // namespace mylos::families
