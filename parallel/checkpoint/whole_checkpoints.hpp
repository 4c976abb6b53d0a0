#pragma once

#include <filesystem>

/// Which checkpoints are whole. Reading every byte of one takes long, so what is found is remembered for as long as the
/// file does not change. On the host of one process.
namespace mylos::parallel {

/// Notes that this process has just written `file`, or compared all of its values with their checksums.
void note_whole(const std::filesystem::path& file);

/// Forgets what was found of `file`.
void forget_whole(const std::filesystem::path& file);

/// Whether every value of `file` has its checksum. Reads the file where that is not known.
bool is_whole(const std::filesystem::path& file);
/// Whether the file is not cut short and its structure, which HDF5 keeps checksums of, is whole. Reads little.
bool has_whole_structure(const std::filesystem::path& file);

}  // namespace mylos::parallel
