#pragma once

#include <string>
#include <string_view>

#include "core/base/files/json.hpp"
#include "data/text/documents.hpp"

namespace mylos::data {

/// JSON lines: one object per line. Blank lines are skipped. The document is in one of these fields:
///
///     input_ids  a list of integers: the document is already tokenized
///     text       a string
///     Moves      a list of strings (LAION's chess games), joined by single spaces to form the text
///
/// The first of these fields that the first object has is used for the whole file. A later line without it is an error,
/// so that no line is misread. Other fields are ignored.
class JsonDocuments : public DocumentReader {
 public:
  /// `text_field` names the field with the text, regardless of other fields. Empty: one of the fields above.
  JsonDocuments(const std::filesystem::path& path, std::string text_field);

  bool next(Document& document) override;

 private:
  enum class Form { undecided, ids, text, moves };
  void decide(const Json& object, const JsonLocation& location);

  Form form_ = Form::undecided;
  std::string field_;
};

}  // namespace mylos::data
