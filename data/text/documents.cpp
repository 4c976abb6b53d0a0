#include "data/text/documents.hpp"

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
#include "data/text/json_documents.hpp"
#include "data/text/pgn_documents.hpp"

namespace mylos::data {
namespace {

class PlainTextDocuments : public DocumentReader {
 public:
  using DocumentReader::DocumentReader;

  bool next(Document& document) override {
    std::string_view line;
    if (!lines_.next(line)) return false;
    document.text = line;
    document.ids.clear();
    document.has_ids = false;
    document.line = lines_.number();
    return true;
  }
};

/// Returns the last extension of the file name in lower case.
std::string ending_of(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c + ('a' - 'A')) : c; });
  return ending;
}

constexpr std::size_t block_bytes = std::size_t{1} << 18;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view gzip_mark = "\x1F\x8B";

}  // namespace

DocumentFormat document_format(const std::filesystem::path& path) {
  const std::string ending = ending_of(path);
  if (ending == ".jsonl") return DocumentFormat::json_lines;
  if (ending == ".pgn") return DocumentFormat::pgn;
  if (ending == ".txt") return DocumentFormat::plain_text;
  ensure(ending != ".gz", fmt::format("{}: gzip-compressed: decompress it first", path.string()));
  fail(fmt::format(
      "{}: the format is unknown; use .jsonl (JSON lines), .pgn (chess games), .txt (one document per line){}",
      path.string(), ending == ".h5" ? "" : " or .h5 (written by `mylos prepare`)"));
}

std::unique_ptr<DocumentReader> open_documents(const std::filesystem::path& path, DocumentFormat format,
                                               const std::string& text_field, const Supervision& supervision) {
  if (format != DocumentFormat::json_lines) check_all_supervised(supervision, path.string());
  switch (format) {
    case DocumentFormat::json_lines:
      return std::make_unique<JsonDocuments>(path, text_field, supervision);
    case DocumentFormat::pgn:
      return std::make_unique<PgnDocuments>(path);
    default:
      return std::make_unique<PlainTextDocuments>(path);
  }
}

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
