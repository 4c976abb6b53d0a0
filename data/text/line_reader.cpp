#include "data/text/line_reader.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/text/unicode.hpp"
#include "core/base/uninterrupted.hpp"

namespace mylos::data {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 18;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view gzip_mark = "\x1F\x8B";

}  // namespace

LineReader::LineReader(const std::filesystem::path& path) : file_(path, PositionedFile::Use::read) {
  while (end_ < byte_order_mark.size() && fill()) {
  }
  const std::string_view begin(buffer_.data(), end_);
  ensure(!begin.starts_with(gzip_mark), fmt::format("{}: gzip-compressed: decompress it first", path.string()));
  if (begin.starts_with(byte_order_mark)) begin_ = bytes_read_ = byte_order_mark.size();
}

bool LineReader::next(std::string_view& line) {
  std::size_t searched = 0;
  const void* found = nullptr;
  while (true) {
    const std::size_t held = end_ - begin_;
    if (held > searched) found = std::memchr(buffer_.data() + begin_ + searched, '\n', held - searched);
    searched = held;
    if (found != nullptr || !fill()) break;
  }
  if (begin_ == end_) return false;
  const char* text = buffer_.data() + begin_;
  const std::size_t size =
      found == nullptr ? end_ - begin_ : static_cast<std::size_t>(static_cast<const char*>(found) - text);
  const std::size_t taken = size + (found == nullptr ? 0 : 1);
  line = {text, size};
  if (line.ends_with('\r')) line.remove_suffix(1);
  begin_ += taken;
  bytes_read_ += taken;
  ++number_;
  if (first_invalid_utf8(line)) ensure_utf8(line, location());
  return true;
}

std::string LineReader::location(std::size_t number) const {
  return fmt::format("{}, line {}", path().string(), number);
}

bool LineReader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  if (buffer_.size() - end_ < block_bytes) buffer_.resize(std::max(2 * end_, end_ + block_bytes));
  const auto count =
      uninterrupted([this] { return ::read(file_.descriptor(), buffer_.data() + end_, buffer_.size() - end_); });
  if (count < 0) fail_with_errno("read", path(), errno);
  end_ += static_cast<std::size_t>(count);
  return count > 0;
}

}  // namespace mylos::data
