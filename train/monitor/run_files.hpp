#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// File names in a run's output directory.
namespace mylos::train {

inline constexpr const char* run_file_name = "run.json";
/// Written and removed immediately, to find out whether there is enough space.
inline constexpr const char* probe_name = ".probe";

/// Returns whether a file with this name may exist in a directory before its run.json does.
bool is_scaffolding(std::string_view name);
/// Returns whether a run writes a file with this name, or a killed one may have left it incomplete.
bool is_run_file(std::string_view name);

/// Returns the sorted names in the directory `path`. Errors: std::runtime_error with a one-line message if it cannot be
/// read.
std::vector<std::string> names_in(const std::filesystem::path& path);

/// Throws SettingError about the setting "output".
[[noreturn]] void refuse_output(const std::filesystem::path& path, std::string_view why);

}  // namespace mylos::train
