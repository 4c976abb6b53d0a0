#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// Files in a directory of checkpoints: step-000123.h5, the text file `latest`, which names one of them, and if tensors
/// are frozen, the file frozen-000123.h5 of their values, which the checkpoints name. The functions run on the host of
/// one process. Errors: std::runtime_error that names the path.
namespace mylos::parallel {

inline constexpr const char* checkpoints_name = "checkpoints";
/// The names of files that show whether all ranks see a directory begin so.
inline constexpr const char* probe_prefix = ".probe-";

struct CheckpointEntry {
  std::size_t step = 0;
  std::filesystem::path file;
};

std::filesystem::path checkpoint_file_name(std::size_t step);
std::filesystem::path frozen_file_name(std::size_t step);
bool is_frozen_file_name(std::string_view name);
/// Returns the path of a new file of frozen values: of `step`, or of the first number after it that is not taken.
std::filesystem::path new_frozen_file(const std::filesystem::path& directory, std::size_t step);
/// Returns a new name for a file that is still being written, which no other process or call uses.
std::filesystem::path unfinished_name(const std::filesystem::path& file);

/// Returns the directory of checkpoints for `path`: a run's output directory, or a directory of checkpoints itself.
std::filesystem::path checkpoints_directory(const std::filesystem::path& path);
/// Returns the checkpoints in the order of steps, without unfinished ones; empty if the directory does not exist.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& directory);

/// Member of a checkpoint's record that numbers the saves in a directory; absent in older files, which means 0.
inline constexpr const char* save_number = "save_number";
/// Returns the largest number of a save in `directory`; 0 if there is none. Damaged files do not count.
std::uint64_t last_save(const std::filesystem::path& directory);

/// Returns the checkpoint file that `path` refers to; empty if there is none. A file refers to itself. A directory
/// refers to the checkpoint named in `latest`, or to the last step if that is missing. A complete file of a later step
/// and a later save takes precedence: `latest` could not be updated after it was written.
std::filesystem::path resolve_checkpoint(const std::filesystem::path& path);

/// Renames the finished file `unfinished` to `file`. Errors: thrown if that fails or may not be on disk.
void publish_file(const std::filesystem::path& unfinished, const std::filesystem::path& file);

/// Renames the finished checkpoint `unfinished` to its final name and updates `latest`. Removes the checkpoints of
/// later steps, and those before the newest `keep` intact ones; damaged ones do not count. Removes files of frozen
/// values that no checkpoint names, also none that has another name. Returns the errors that occurred after the new
/// name was on disk; empty if there were none. Errors: thrown if the renaming fails or may not be on disk; nothing is
/// removed then.
std::string publish_checkpoint(const std::filesystem::path& unfinished, const std::filesystem::path& directory,
                               std::size_t step, std::size_t keep);

/// Removes the checkpoint of a step and files of frozen values that no other names, and sets `latest` to the newest of
/// the others.
void withdraw_checkpoint(const std::filesystem::path& directory, std::size_t step);

/// Creates the directory and removes leftovers of interrupted saves.
void clear_unfinished(const std::filesystem::path& directory);

/// Bytes of values.
struct CheckpointBytes {
  std::size_t each = 0;    ///< in every checkpoint
  std::size_t frozen = 0;  ///< in the file of frozen values that they share
};
/// Checks that `kept` checkpoints and one more fit. Errors: thrown with the needed and the free space if not.
void check_checkpoint_space(const std::filesystem::path& directory, const CheckpointBytes& bytes, std::size_t kept);

}  // namespace mylos::parallel
