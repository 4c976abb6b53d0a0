#pragma once

#include <cstdint>

/// Names in a checkpoint's file that its writer and its reader share.
namespace mylos::parallel {

inline constexpr const char* checkpoint_format = "mylos checkpoint";
/// Counts up with each change that an older reader would misread.
inline constexpr std::uint64_t checkpoint_format_version = 1;

inline constexpr const char* format_attribute = "format";
inline constexpr const char* version_attribute = "format_version";
inline constexpr const char* record_group = "/run";
inline constexpr const char* checksums_group = "/checksums";  ///< of dataset D the table is /checksums + D

}  // namespace mylos::parallel
