#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/text/line_reader.hpp"
#include "data/tokenizer/vocabulary.hpp"

/// Documents of a file, in its order: what a language model learns from. Errors are std::runtime_error of one line that
/// names the file, the line and, in JSON lines, the field.
namespace mylos::data {

enum class DocumentFormat {
  json_lines,  ///< one object a line, see json_documents.hpp
  pgn,         ///< chess games, see pgn_documents.hpp
  plain_text,  ///< a document a line
};

/// The format that a file's name says: .jsonl, .pgn or .txt. Throws for other names.
DocumentFormat document_format(const std::filesystem::path& path);

/// A text, or the ids that a tokenizer elsewhere made of it.
struct Document {
  std::string text;
  std::vector<TokenId> ids;
  bool has_ids = false;
  std::size_t line = 0;  ///< the first of its lines in the file, from 1
};

class DocumentReader {
 public:
  explicit DocumentReader(const std::filesystem::path& path) : lines_(path) {}
  virtual ~DocumentReader() = default;
  DocumentReader(const DocumentReader&) = delete;
  DocumentReader& operator=(const DocumentReader&) = delete;

  /// Reads the next document, which may be empty; false at the end of the file.
  virtual bool next(Document& document) = 0;

  const LineReader& lines() const { return lines_; }

 protected:
  LineReader lines_;
};

/// Opens a file. `text_field` names the field of JSON lines that holds the text; empty: see json_documents.hpp.
std::unique_ptr<DocumentReader> open_documents(const std::filesystem::path& path, DocumentFormat format,
                                               const std::string& text_field = {});

}  // namespace mylos::data
