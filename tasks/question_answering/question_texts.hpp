#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mylos::tasks {

/// Returns the texts of a question file that are tokenized when it is cut into windows: each context once, and each
/// question. Errors: std::runtime_error naming the file.
std::vector<std::string> question_texts(const std::filesystem::path& file);

}  // namespace mylos::tasks
