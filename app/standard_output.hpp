#pragma once

#include <string_view>

/// Results go to standard output, and a command that could not deliver them has not succeeded.
namespace mylos::app {

/// Thrown where the reader of standard output has gone (`mylos tokenize | head`): there is nobody left to work for.
struct ReaderGone {};

/// Appends to standard output's buffer, which is written when it is large, and on a terminal at once.
void print(std::string_view text);

/// Writes what is buffered. Errors: std::runtime_error with the reason (a full disk); ReaderGone.
void flush_output();

/// One line on standard error; control characters become spaces, so that it stays one. Never throws: a closed
/// standard error must not end a run.
void log_line(std::string_view text);

}  // namespace mylos::app
