#pragma once

#include <filesystem>
#include <string>

namespace mylos::tasks {

/// Returns the directory where `mylos fetch` put `fetched`, for the model with built-in sizes called `name`. Plans read
/// its tokenizer to cut the data in `file`. Errors: std::runtime_error if it has not been fetched.
std::filesystem::path find_known_directory(const std::string& name, const std::string& fetched,
                                           const std::filesystem::path& file);

}  // namespace mylos::tasks
