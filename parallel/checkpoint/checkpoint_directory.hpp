#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

/// The files in a directory of checkpoints: step-000123.h5, and `latest`, a text that names one of them. On the host of
/// one process. Errors: std::runtime_error naming the path.
namespace mylos::parallel {

inline constexpr const char* checkpoints_name = "checkpoints";

struct CheckpointEntry {
  std::size_t step = 0;
  std::filesystem::path file;
};

std::filesystem::path checkpoint_file_name(std::size_t step);
/// Where a checkpoint is written until it is whole.
std::filesystem::path unfinished_name(const std::filesystem::path& file);

/// The directory of checkpoints that `path` means: a run's output directory, or one of checkpoints.
std::filesystem::path checkpoints_directory(const std::filesystem::path& path);
/// Whole checkpoints, in the order of steps; none where there is no such directory.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& directory);

/// A file is itself; a directory means the checkpoint that its `latest` names, or the last step where that is gone. A
/// complete file of a later step that is newer than `latest` is taken instead: `latest` could not be written after it.
/// Empty where there is none.
std::filesystem::path resolve_checkpoint(const std::filesystem::path& path);

/// Renames a finished checkpoint to its name, points `latest` to it and removes those of later steps, and those before
/// the newest `keep` whole ones. A damaged one is not counted. Returns what failed once the file had its name: `latest`
/// or removing others; empty where nothing did. Errors: the file does not get its name.
std::string publish_checkpoint(const std::filesystem::path& directory, std::size_t step, std::size_t keep);

/// Removes the checkpoint of a step, and points `latest` to the newest of the others.
void withdraw_checkpoint(const std::filesystem::path& directory, std::size_t step);

/// Makes the directory and removes what killed saves left in it.
void clear_unfinished(const std::filesystem::path& directory);
/// Errors: both numbers, where `kept` checkpoints of `bytes` and one more do not fit.
void check_checkpoint_space(const std::filesystem::path& directory, std::size_t bytes, std::size_t kept);

}  // namespace mylos::parallel
