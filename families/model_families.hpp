#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "data/huggingface/model_family.hpp"
#include "data/tokenizer/tokenizer.hpp"

/// The table of model families.
namespace mylos::families {

/// Returns the family named in config.json of `directory`. Throws std::runtime_error with the file, its model_type and
/// the supported families if there is no such family.
const data::ModelFamily& find_model_family(const std::filesystem::path& directory);

/// Returns the models of the family `type` whose sizes are built in; none if there is no such family.
std::span<const data::KnownModel> known_models(std::string_view type);

/// Returns the built-in model called `name`, or fetched by that name, of the family `type`, or of any if that is empty.
/// Null if there is none, or if `name` is a directory, which takes precedence.
const data::KnownModel* find_known_model(std::string_view name, std::string_view type = {});

/// Throws the errors of find_model_family if config.json names a model type that no family has. Readers report other
/// errors of the file.
void check_model_family(const std::filesystem::path& directory);

/// Returns the tokenizer of the model in `directory`. Throws std::runtime_error with the file that is missing or wrong;
/// UsageError if models of this family have none.
std::unique_ptr<data::Tokenizer> read_tokenizer(const std::filesystem::path& directory);

/// Throws std::runtime_error: the model in `directory` has no tokenizer, and texts need one.
[[noreturn]] void fail_without_tokenizer(const std::filesystem::path& directory);

/// Returns the tokenizer of a vocabulary alone, a vocab.txt. Errors: std::runtime_error with the file.
std::unique_ptr<data::Tokenizer> read_vocabulary(const std::filesystem::path& file, bool lower_case);

}  // namespace mylos::families
