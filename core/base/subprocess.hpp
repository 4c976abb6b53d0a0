#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mylos {

/// What a finished program said. `exit_code` is 128 + the signal's number where a signal ended it.
struct ProcessResult {
  int exit_code = 0;
  std::string output;
  std::string errors;
};

/// Runs arguments[0], found in PATH, with these arguments and no shell, and waits for it. Its standard input is
/// `input`, which no other user can read and which lies in no file. Throws std::runtime_error where the program cannot
/// be started ("python3 cannot be run: No such file or directory").
ProcessResult run_process(const std::vector<std::string>& arguments, std::string_view input = {});

/// The last line of `text` that is not blank; empty where there is none.
std::string last_line(const std::string& text);

}  // namespace mylos
