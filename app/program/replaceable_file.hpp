#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

/// Keeps files that this program did not write from being replaced.
namespace mylos::app {

/// A file that a command is to write.
struct OutputFile {
  std::string_view option;  ///< that names it: "--output"
  std::filesystem::path file;
  std::string_view kind;                                      ///< "a report"
  std::function<bool(const std::filesystem::path&)> is_ours;  ///< whether this program wrote a file as one of that kind
  std::string_view advice = "replace it with --overwrite";
};

/// Errors: std::runtime_error of one line where the file is there, has any content, and was not written by this
/// program, unless `overwrite`; also where it is a directory or a device.
void check_replaceable(const OutputFile& output, bool overwrite);

}  // namespace mylos::app
