#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// Runs the program as a user does.
namespace mylos::tests {

struct ProgramRun {
  int exit_code = 0;  ///< 128 + the signal where one ended it
  std::string output;
  std::string errors;

  /// Lines on standard error.
  std::vector<std::string> error_lines() const;
};

/// Runs mylos with these arguments and `input` on its standard input, and waits for it. Its standard output goes to
/// `output` where one is named (say, /dev/full), else it is returned.
ProgramRun run_mylos(const std::vector<std::string>& arguments, const std::string& input = "",
                     const std::filesystem::path& output = {});

}  // namespace mylos::tests
