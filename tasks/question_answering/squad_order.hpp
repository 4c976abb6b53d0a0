#pragma once

#include "tasks/question_answering/squad_windows.hpp"

#include <filesystem>
#include <vector>

/// Reads a recorded order of training, to replay the run of another program.
namespace mylos::tasks {

/// Reads `--order FILE`: JSON lines, one step per line, each a list of [question id, window index]. Returns, for each
/// step, indices into `windows`. Errors: std::runtime_error naming the line and the id or window that does not exist.
std::vector<std::vector<std::size_t>> read_order(const std::filesystem::path& path, const SquadWindows& windows);

}  // namespace mylos::tasks
