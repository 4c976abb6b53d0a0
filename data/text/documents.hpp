#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/text/line_reader.hpp"
#include "data/tokenizer/vocabulary.hpp"

/// The documents of a file, in file order: the training text of a language model. Errors are std::runtime_error of one
/// line with the file, the line and, for JSON lines, the field.
namespace mylos::data {

enum class DocumentFormat {
  json_lines,  ///< one object per line, see json_documents.hpp
  pgn,         ///< chess games, see pgn_documents.hpp
  plain_text,  ///< one document per line
};

/// Returns the format by the extension of the file name: .jsonl, .pgn or .txt. Throws for other extensions.
DocumentFormat document_format(const std::filesystem::path& path);

/// A text, or token ids if the document was tokenized elsewhere.
struct Document {
  std::string text;
  std::vector<TokenId> ids;
  bool has_ids = false;
  std::size_t line = 0;  ///< its first line in the file, from 1
};

class DocumentReader {
 public:
  explicit DocumentReader(const std::filesystem::path& path) : lines_(path) {}
  virtual ~DocumentReader() = default;
  DocumentReader(const DocumentReader&) = delete;
  DocumentReader& operator=(const DocumentReader&) = delete;

  /// Reads the next document, which may be empty. Returns false at the end of the file.
  virtual bool next(Document& document) = 0;

  const LineReader& lines() const { return lines_; }

 protected:
  LineReader lines_;
};

/// Opens a file. `text_field` names the field with the text in JSON lines. Empty: see json_documents.hpp.
std::unique_ptr<DocumentReader> open_documents(const std::filesystem::path& path, DocumentFormat format,
                                               const std::string& text_field = {});

}  // namespace mylos::data
