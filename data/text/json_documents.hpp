#pragma once

#include <string>
#include <string_view>

#include "core/base/files/json.hpp"
#include "data/text/documents.hpp"

namespace mylos::data {

/// The label of a token that the loss does not count, in files of transformers and PyTorch.
inline constexpr std::int64_t no_label = -100;

/// JSON lines: one object per line. Blank lines are skipped. The document is in one of these fields:
///
///     input_ids  a list of integers: the document is already tokenized. With `labels`, a list of as many integers, the
///                loss counts a token if its label is itself, and not if it is -100; no BOS or EOS is added
///     messages   a conversation, which the model's chat template makes a text, with `tools` if there are any
///     prompt     a string, which `completion` continues; eos_token of tokenizer_config.json ends it. A row with `text`
///                and no `completion` is a text
///     text       a string
///     Moves      a list of strings (LAION's chess games), joined by single spaces to form the text
///
/// The first of these fields that the first object has is used for the whole file. A later line without it is an error,
/// so that no line is misread. Other fields are ignored.
class JsonDocuments : public DocumentReader {
 public:
  /// `text_field` names the field with the document, regardless of other fields: a text if it is a string in the first
  /// object, else as above. Empty: one of the fields above.
  JsonDocuments(const std::filesystem::path& path, std::string text_field, Supervision supervision = {});

  bool next(Document& document) override;
  std::optional<std::uint32_t> chat_template() const override {
    return form_ == Form::messages ? chat_->checksum() : std::nullopt;
  }

 private:
  enum class Form { undecided, ids, messages, completion, text, moves };
  void decide(const Json& object, const JsonLocation& location);
  void take_labels(const Json& object, const JsonLocation& location, Document& document) const;
  void take_completion(const Json& object, const JsonLocation& location, Document& document) const;

  Form form_ = Form::undecided;
  std::string field_;
  bool has_labels_ = false;
  Supervision supervision_;
  std::optional<ChatFormat> chat_;
};

/// Throws SettingError if `supervision` names a part that texts do not have. `name` names the file.
void check_all_supervised(const Supervision& supervision, const std::string& name);

}  // namespace mylos::data
