#pragma once

#include <filesystem>
#include <string>

namespace mylos::tasks {

/// Returns the directory of the model called `name`, which is known by its sizes, where `mylos fetch` put `fetched`. A
/// plan reads its tokenizer to cut the data in `file`. Errors: std::runtime_error where it was not fetched.
std::filesystem::path find_known_directory(const std::string& name, const std::string& fetched,
                                           const std::filesystem::path& file);

}  // namespace mylos::tasks
