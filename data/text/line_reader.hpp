#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/positioned_file.hpp"

namespace mylos::data {

/// Reads a UTF-8 text file line by line, in one pass: what it holds is the longest line and a block of the file. Throws
/// std::runtime_error of one line with the file, and the line where there is one: the file is missing, a directory,
/// unreadable or gzip-compressed, or a line is not UTF-8.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path);

  /// Moves to the next line, without its LF or CRLF and, in the first one, without a byte order mark. Text after the
  /// last line feed is a line. False at the end; the line is valid until the next call.
  bool next(std::string_view& line);

  /// "games.jsonl, line 3": the line that `next` gave last, or `number`.
  std::string location() const { return location(number_); }
  std::string location(std::size_t number) const;
  /// The line that `next` gave last, from 1.
  std::size_t number() const { return number_; }
  /// Bytes of the lines so far, and of the whole file (0 for a pipe).
  std::uint64_t bytes_read() const { return bytes_read_; }
  std::uint64_t bytes() const { return file_.size(); }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  /// Reads another block; false at the end of the file.
  bool fill();

  PositionedFile file_;
  std::string buffer_;
  std::size_t begin_ = 0;  ///< of the text in `buffer_` that was not given yet
  std::size_t end_ = 0;
  std::size_t number_ = 0;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace mylos::data
