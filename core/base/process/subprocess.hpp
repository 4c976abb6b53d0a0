#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace mylos {

/// The exit code and output of a finished program. `exit_code` is 128 + the signal number if a signal ended it.
struct ProcessResult {
  int exit_code = 0;
  std::string output;
  std::string errors;
};

/// Runs arguments[0], found in PATH, with these arguments and without a shell, and waits for it. Its standard input is
/// `input`, which is never stored in a file and cannot be read by other users. Throws std::runtime_error if the program
/// cannot be started ("python3 cannot be run: No such file or directory"), or if the system does not keep its exit
/// code.
ProcessResult run_process(const std::vector<std::string>& arguments, std::string_view input = {});

/// Starts arguments[0], found in PATH, with these arguments and file actions, and with the signals blocked that were
/// blocked when this program started. Destroys `files`. Errors: as above.
pid_t spawn_process(const std::vector<std::string>& arguments, posix_spawn_file_actions_t& files);

/// Returns the last non-blank line of `text`; empty if there is none.
std::string last_line(const std::string& text);

}  // namespace mylos
