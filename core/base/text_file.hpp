#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mylos {

/// All bytes of a text file. Throws, naming the file, where it is missing, a directory, unreadable or empty
/// (nothing but white space), gzip-compressed, or not UTF-8 (with the byte). A leading byte order mark is dropped.
std::string read_text_file(const std::filesystem::path& path);

/// The lines of `text` without their LF or CRLF; text after the last line feed counts as a line.
std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace mylos
