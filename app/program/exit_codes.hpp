#pragma once

#include <string>

/// Exit codes of the program, and the reporting of errors.
namespace mylos::app {

inline constexpr int success = 0, failure = 1, usage = 2;

/// For exception handlers: prints the current exception as one line that begins with `who`, and returns the exit code
/// for its type. Prints nothing if `tells` is false, because another process does.
int report_exception(bool tells = true, const std::string& who = {});

}  // namespace mylos::app
