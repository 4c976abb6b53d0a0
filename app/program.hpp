#pragma once

#include <string>
#include <vector>

namespace mylos::app {

/// Runs the command that `words` (the command line without the program's name) ask for and returns its exit code. What
/// goes wrong is one line on standard error.
int run_program(const std::vector<std::string>& words);

}  // namespace mylos::app
