#pragma once

#include <cstdint>

/// Names in the checkpoint file, shared by writer and reader.
namespace mylos::parallel {

inline constexpr const char* checkpoint_format = "mylos checkpoint";
/// Incremented with each change that an older reader would misinterpret. 2 names a file of frozen tensors; others are
/// written as 1.
inline constexpr std::uint64_t checkpoint_format_version = 2;

inline constexpr const char* format_attribute = "format";
inline constexpr const char* version_attribute = "format_version";
inline constexpr const char* record_group = "/run";
inline constexpr const char* record_checksum_attribute = "run_crc32c";  ///< CheckpointRecord::checksum of /run
inline constexpr const char* checksums_group = "/checksums";            ///< the table of dataset D is /checksums + D

}  // namespace mylos::parallel
