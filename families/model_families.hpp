#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/notice.hpp"
#include "data/huggingface/model_family.hpp"
#include "data/tokenizer/tokenizer.hpp"
#include "families/interface/body_output.hpp"

/// The table of model families.
namespace mylos::families {

/// Returns the family named in config.json of `directory`. Throws std::runtime_error with the file, its model_type and
/// the supported families if there is no such family.
const data::ModelFamily& find_model_family(const FileReader& files, const std::filesystem::path& directory);

/// Returns the model types of the families that give `output`.
std::vector<std::string_view> types_that_give(BodyOutput output);

/// Returns the names of the built-in models of these families.
std::vector<std::string> known_models(BodyOutput output);

/// Returns the built-in model called `name`, or fetched by that name, of a family that gives `output`, or of any if
/// that is nullopt. Null if there is none, or if `name` is a directory, which takes precedence.
const data::KnownModel* find_known_model(std::string_view name, std::optional<BodyOutput> output = {});

/// Throws the errors of find_model_family if config.json names a model type that no family has. Readers report other
/// errors of the file.
void check_model_family(const FileReader& files, const std::filesystem::path& directory);

/// Returns whether a directory has a tokenizer.json without a model.
bool holds_only_tokenizer(const std::filesystem::path& directory);

/// Returns the tokenizer of the model in `directory`, or the only one there. Throws std::runtime_error with the file
/// that is missing or wrong; UsageError if models of this family have none.
std::unique_ptr<data::Tokenizer> read_tokenizer(const FileReader& files, const std::filesystem::path& directory);

/// Throws std::runtime_error: the model in `directory` has no tokenizer, and texts need one.
[[noreturn]] void fail_without_tokenizer(const std::filesystem::path& directory);

/// Says in a line which file the tokenizer of a directory with two tokenizer files is read from.
void notice_tokenizer_choice(const FileReader& files, const std::filesystem::path& directory, const Notice& notice);

/// Returns the tokenizer of a vocabulary alone, a vocab.txt. Errors: std::runtime_error with the file.
std::unique_ptr<data::Tokenizer> read_vocabulary(const std::filesystem::path& file, bool lower_case);

}  // namespace mylos::families
