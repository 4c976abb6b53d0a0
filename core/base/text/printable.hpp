#pragma once

#include <string>
#include <string_view>

/// Sanitizes untrusted text for terminals. Terminals obey control characters (C0, DEL and C1). For example, an escape
/// sequence can overwrite the clipboard.
namespace mylos {

/// Escapes control characters in `text` and cuts it after 80 bytes, so that a hostile name cannot break a message.
std::string printable(std::string_view text);

/// Removes all control characters from `text` except newline and tab.
std::string without_controls(std::string_view text);

/// Escapes DEL and C1 in `text`, which must be JSON, without changing its values. JSON writers escape C0 themselves;
/// newlines of indented JSON are kept.
std::string json_without_controls(std::string_view text);

/// Replaces line breaks by spaces and removes those at the end: libraries end their messages with line breaks.
std::string on_one_line(std::string text);

}  // namespace mylos
