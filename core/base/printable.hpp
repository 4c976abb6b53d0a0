#pragma once

#include <string>
#include <string_view>

/// Text from files on its way to a terminal, which obeys control characters: C0, DEL and C1. Escape sequences that
/// begin with them can, say, write somebody's clipboard.
namespace mylos {

/// `text` with control characters escaped and cut after 80 bytes, so that a hostile name cannot break a message.
std::string printable(std::string_view text);

/// `text` less its control characters but newline and tab.
std::string without_controls(std::string_view text);

/// `text`, which is JSON, with DEL and C1 as escapes, so that the values stay what they are. JSON writers escape C0
/// themselves: newlines of indented JSON stay.
std::string json_without_controls(std::string_view text);

}  // namespace mylos
