#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mylos {

class FileReader;

/// Returns the content of a text file, without a leading byte order mark. Throws, naming the file, if it is missing, a
/// directory, unreadable, empty (nothing but white space), gzip-compressed, or not UTF-8 (with the byte offset).
std::string read_text_file(const FileReader& files, const std::filesystem::path& path);
/// Does the same for a file that only this process needs.
std::string read_text_file(const std::filesystem::path& path);

/// Splits `text` into lines, without their LF or CRLF; text after the last line feed counts as a line.
std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace mylos
