#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

/// Protects files that this program did not write.
namespace mylos::app {

/// An output file of a command.
struct OutputFile {
  std::string_view option;  ///< option that names it: "--output"
  std::filesystem::path file;
  std::string_view kind;                                      ///< kind of file: "a report"
  std::function<bool(const std::filesystem::path&)> is_ours;  ///< whether this program wrote a given file of this kind
  std::string_view advice = "replace it with --overwrite";
};

/// Checks that the file may be written. Errors: std::runtime_error with one line if the file is not empty and was not
/// written by this program, unless `overwrite`; also if it is a directory or a device.
void check_replaceable(const OutputFile& output, bool overwrite);

}  // namespace mylos::app
