#pragma once

#include <string>
#include <vector>

namespace mylos::app {

/// Runs the command in `words` (the command line without the program's name) and returns its exit code. Prints an error
/// as one line on standard error.
int run_program(const std::vector<std::string>& words);

}  // namespace mylos::app
