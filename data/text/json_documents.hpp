#pragma once

#include <string>
#include <string_view>

#include "core/base/json.hpp"
#include "data/text/documents.hpp"

namespace mylos::data {

/// JSON lines: an object a line, and blank lines, which count as nothing. The document is in one of these fields:
///
///     input_ids  a list of whole numbers: the document is already tokenized
///     text       a string
///     Moves      a list of strings (LAION's chess games); the text is the strings joined by one space
///
/// The first object decides, in this order, which field the whole file has: a later line without it is an error, so
/// that no line is taken for what it is not. Other fields are left alone.
class JsonDocuments : public DocumentReader {
 public:
  /// `text_field`: the field with the text, whatever else there is; empty: one of those above.
  JsonDocuments(const std::filesystem::path& path, std::string text_field);

  bool next(Document& document) override;

 private:
  enum class Form { undecided, ids, text, moves };
  void decide(const Json& object, const JsonLocation& location);

  Form form_ = Form::undecided;
  std::string field_;
};

}  // namespace mylos::data
