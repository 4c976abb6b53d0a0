#pragma once

#include "parallel/communicator/communicator.hpp"
#include "train/engine/task.hpp"

#include <filesystem>
#include <string>

/// Brings together what the ranks of a run note about its data as they read them, keeps it beside the checkpoints, and
/// compares it on resume. All functions are collective; an error of one rank is thrown on all.
namespace mylos::train {

/// Returns the file of the notes called `name` of the run in `output`.
std::filesystem::path notes_file(const std::filesystem::path& output, const std::string& name);

/// Adds what each rank has noted since the last call to the notes of the first rank.
void collect_notes(parallel::Communicator& ranks, const Task& task);

/// Writes the notes of the first rank that are not yet in `directory`, which holds the run's checkpoints.
void save_notes(parallel::Communicator& ranks, const Task& task, const std::filesystem::path& directory);

/// Takes over the notes in the directory of the checkpoint that is resumed, if there are any. Errors: the task's data
/// differ from those of the notes.
void resume_notes(parallel::Communicator& ranks, const Task& task, const std::filesystem::path& directory);

}  // namespace mylos::train
