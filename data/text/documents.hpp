#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/positioned_file.hpp"
#include "data/text/chat_format.hpp"
#include "data/tokenizer/vocabulary.hpp"

/// The documents of a file, in file order: the training text of a language model. Errors are std::runtime_error of one
/// line with the file, the line and, for JSON lines, the field.
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
