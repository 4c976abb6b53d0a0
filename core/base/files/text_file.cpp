#include "core/base/files/text_file.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/files/file_reader.hpp"
#include "core/base/text/unicode.hpp"

namespace mylos {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view gzip_mark = "\x1F\x8B";

}  // namespace

std::string read_text_file(const FileReader& files, const std::filesystem::path& path) {
  std::string text = files.read_text(path);
  ensure(!text.starts_with(gzip_mark), fmt::format("{}: gzip-compressed: decompress it first", path.string()));
  ensure_utf8(text, path.string());
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) fail(fmt::format("{}: the file is empty", path.string()));
  return text;
}

std::string read_text_file(const std::filesystem::path& path) { return read_text_file(FileReader(), path); }

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  return lines;
}

}  // namespace mylos
