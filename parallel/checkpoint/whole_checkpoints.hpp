#pragma once

#include <filesystem>

/// Finds out which checkpoints are intact. Reading all bytes of a checkpoint takes long, so results are cached until
/// the file changes. The functions run on the host of one process.
namespace mylos::parallel {

/// Marks `file` as intact, because this process has just written it or verified all its checksums.
void note_whole(const std::filesystem::path& file);

/// Removes the cached result for `file`, or all results.
void forget_whole(const std::filesystem::path& file);
void forget_whole();

/// Returns true if all values of `file` match their checksums. Reads the file unless the result is cached.
bool is_whole(const std::filesystem::path& file);
/// Returns true if the file is not truncated and its structure, for which HDF5 keeps checksums, is intact. Reads
/// little.
bool has_whole_structure(const std::filesystem::path& file);

}  // namespace mylos::parallel
