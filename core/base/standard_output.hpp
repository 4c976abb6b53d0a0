#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string_view>

/// Results go to standard output, and a command that could not deliver them has not succeeded.
namespace mylos {

/// Thrown where the reader of standard output has gone (`mylos tokenize | head`): there is nobody left to work for.
struct ReaderGone {};

/// Appends to standard output's buffer, which is written when it is large, and on a terminal at once. Drops control
/// characters but newline and tab: text from files must not command the terminal.
void print(std::string_view text);

/// Prints `value` indented. Bytes that are no UTF-8, as names of files may have, become U+FFFD: JSON cannot say them.
void print_indented_json(const nlohmann::ordered_json& value);

/// The same for JSON, which keeps its values: control characters become escapes.
void print_json_text(std::string_view text);

/// The same for text with our own terminal escapes. Data in it must have come through without_controls.
void print_escapes(std::string_view text);

/// Writes what is buffered. Errors: std::runtime_error with the reason (a full disk); ReaderGone.
void flush_output();

/// One line on standard error; C0 controls become spaces, so that it stays one, and C1 controls are dropped. Never
/// throws: a closed standard error must not end a run.
void log_line(std::string_view text);

/// Prints complete lines to standard error; drops control characters but newline and tab. Never throws.
void log_text(std::string_view text);

}  // namespace mylos
