#pragma once

#include "tasks/question_answering/squad_windows.hpp"

#include <filesystem>
#include <vector>

/// A recorded order of training, for replaying another program's run.
namespace mylos::tasks {

/// Reads `--order FILE`: JSON lines, one step a line, a list of [question id, window index]. Returns indices into
/// `windows`, step by step. Errors: std::runtime_error naming the line and the id or window that is not there.
std::vector<std::vector<std::size_t>> read_order(const std::filesystem::path& path, const SquadWindows& windows);

}  // namespace mylos::tasks
