#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"

#include <cstddef>
#include <filesystem>
#include <string>

/// The models of runs and plans on texts.
namespace mylos::tasks {

/// Limits --max-length to the `positions` of the model that the user called `name`. The default is shortened with a
/// line to `notice`, as in run_qa. Errors: UsageError if the user gave a longer length.
void fit_max_length(std::size_t& length, std::size_t positions, const std::string& name, const OptionSources& sources,
                    const Notice& notice);

/// Returns the directory where `mylos fetch` put `fetched`, for the model with built-in sizes called `name`. Plans read
/// its tokenizer to cut the data in `file`. Errors: std::runtime_error if it has not been fetched.
std::filesystem::path find_known_directory(const std::string& name, const std::string& fetched,
                                           const std::filesystem::path& file);

}  // namespace mylos::tasks
