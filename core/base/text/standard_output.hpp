#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string_view>

/// Standard output for results. A command that cannot write its results fails.
namespace mylos {

/// Thrown if the reader of standard output has closed it (`mylos tokenize | head`), so that no more output is needed.
struct ReaderGone {};

/// Appends to standard output's buffer, which is flushed when it is large and, on a terminal, after each call. Drops
/// control characters except newline and tab, so that text from files cannot control the terminal.
void print(std::string_view text);

/// Prints text as it is, but on a terminal as print() does.
void print_result_text(std::string_view text);

/// Prints `value` as indented JSON. Bytes that are not UTF-8, as in some file names, become U+FFFD: JSON cannot
/// represent them.
void print_indented_json(const nlohmann::ordered_json& value);

/// Prints JSON text; control characters become escapes, so that values are preserved.
void print_json_text(std::string_view text);

/// Prints text with our own terminal escapes. Data in it must have passed through without_controls.
void print_escapes(std::string_view text);

/// Writes the buffered output. Errors: std::runtime_error with the reason (such as a full disk); ReaderGone.
void flush_output();

/// Writes one line to standard error. C0 controls become spaces, so that it stays one line, and C1 controls are
/// dropped. Never throws: a closed standard error must not end a run.
void log_line(std::string_view text);

/// Writes complete lines to standard error; drops control characters except newline and tab. Never throws.
void log_text(std::string_view text);

}  // namespace mylos
