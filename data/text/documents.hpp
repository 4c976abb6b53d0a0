#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/text/chat_format.hpp"
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

/// Says which tokens of the documents the loss counts, and how documents become texts.
struct Supervision {
  std::optional<LossOn> loss_on;    ///< nullopt: assistant in messages, completion after a prompt, else all
  std::filesystem::path directory;  ///< the model's, with its chat template
  bool ends = true;                 ///< eos_token of tokenizer_config.json ends a completion
  std::string chat_time = {};       ///< for ChatFormat
};

/// A text, or token ids if the document was tokenized elsewhere.
struct Document {
  std::string text;
  std::vector<TokenId> ids;
  bool has_ids = false;
  bool begins = false, ends = false;  ///< it has its own BOS or EOS, if any
  /// The loss counts the tokens of these parts of the text only, or those marked by 1 only; nullopt or empty: all.
  std::optional<std::vector<CodePointRange>> supervised_text;
  std::vector<std::uint8_t> supervised;  ///< (ids)
  std::size_t line = 0;                  ///< its first line in the file, from 1
};

class DocumentReader {
 public:
  explicit DocumentReader(const std::filesystem::path& path) : lines_(path) {}
  virtual ~DocumentReader() = default;
  DocumentReader(const DocumentReader&) = delete;
  DocumentReader& operator=(const DocumentReader&) = delete;

  /// Reads the next document, which may be empty. Returns false at the end of the file.
  virtual bool next(Document& document) = 0;
  /// Returns the checksum of the chat template that wrote the documents; nullopt if none did.
  virtual std::optional<std::uint32_t> chat_template() const { return {}; }

  const LineReader& lines() const { return lines_; }

 protected:
  LineReader lines_;
};

/// Opens a file. `text_field` names the field with the text in JSON lines. Empty: see json_documents.hpp. Throws
/// SettingError if the documents do not have the part that `supervision` names.
std::unique_ptr<DocumentReader> open_documents(const std::filesystem::path& path, DocumentFormat format,
                                               const std::string& text_field = {}, const Supervision& supervision = {});

}  // namespace mylos::data
