#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// The names in a run's output directory.
namespace mylos::train {

inline constexpr const char* run_file_name = "run.json";
/// Written and removed at once, to find out whether there is room.
inline constexpr const char* probe_name = ".probe";

/// Whether a file of this name may exist in a directory before its run.json does.
bool is_scaffolding(std::string_view name);
/// Whether a run writes this file, or a killed one may have left it half-written.
bool is_run_file(std::string_view name);

/// The names in the directory `path`, sorted. Errors: std::runtime_error of one line where it cannot be read.
std::vector<std::string> names_in(const std::filesystem::path& path);

/// Throws std::runtime_error: "--output PATH: WHY".
[[noreturn]] void refuse_output(const std::filesystem::path& path, std::string_view why);

}  // namespace mylos::train
