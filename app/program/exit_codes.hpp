#pragma once

#include <string>

/// How the program ends where it does not succeed.
namespace mylos::app {

inline constexpr int success = 0, failure = 1, usage = 2;

/// For a handler of an exception: says it in one line, `who` before it, and gives the exit code that goes with its
/// kind. Where `tells` is false another process says it.
int report_exception(bool tells = true, const std::string& who = {});

}  // namespace mylos::app
