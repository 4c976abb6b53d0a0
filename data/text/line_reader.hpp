#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/files/positioned_file.hpp"

namespace mylos::data {

/// Reads a UTF-8 text file line by line, in one pass. Memory use is one block of the file and the longest line. Throws
/// std::runtime_error of one line with the file, and with the line number if there is one, if the file is missing, a
/// directory, unreadable or gzip-compressed, or if a line is not UTF-8.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path);

  /// Reads the next line, without its LF or CRLF and, in the first line, without a byte order mark. Text after the last
  /// line feed is a line. Returns false at the end of the file. The line is valid until the next call.
  bool next(std::string_view& line);

  /// Returns "games.jsonl, line 3" for the last line that `next` returned, or for `number`.
  std::string location() const { return location(number_); }
  std::string location(std::size_t number) const;
  /// Returns the number of the last line that `next` returned, from 1.
  std::size_t number() const { return number_; }
  /// Bytes of the lines read so far, and of the whole file (0 for a pipe).
  std::uint64_t bytes_read() const { return bytes_read_; }
  std::uint64_t bytes() const { return file_.size(); }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  /// Reads another block. Returns false at the end of the file.
  bool fill();

  PositionedFile file_;
  std::string buffer_;
  std::size_t begin_ = 0;  ///< start of the text in `buffer_` that has not been returned yet
  std::size_t end_ = 0;
  std::size_t number_ = 0;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace mylos::data
