#include "data/text/documents.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
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

}  // namespace mylos::data
