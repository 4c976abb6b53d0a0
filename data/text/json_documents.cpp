#include "data/text/json_documents.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"

namespace mylos::data {
namespace {

constexpr const char* ids_field = "input_ids";
constexpr const char* default_text_field = "text";
constexpr const char* moves_field = "Moves";

/// Parses one line as JSON. Errors contain the position in the text, and `location` has the line of the file.
Json parse_line(std::string_view line, const std::string& location) {
  try {
    return parse_json(line, location);
  } catch (const std::runtime_error& error) {
    constexpr std::string_view in_text = " at line 1, column ";
    std::string message = error.what();
    if (const auto at = message.find(in_text, location.size()); at != std::string::npos) {
      message.replace(at, in_text.size(), " at column ");
    }
    fail(message);
  }
}

void take_ids(const Json& list, const JsonLocation& location, std::vector<TokenId>& ids) {
  for (std::size_t i = 0; i < as_list(list, location).size(); ++i) {
    const JsonLocation item(location, i);
    const std::size_t id = as_count(list[i], item);
    if (id > static_cast<std::size_t>(std::numeric_limits<TokenId>::max()))
      item.fail(fmt::format("{} is not a token id", id));
    ids.push_back(static_cast<TokenId>(id));
  }
}

void join_moves(const Json& list, const JsonLocation& location, std::string& text) {
  if (!list.is_array()) location.fail("expected a list of strings");
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += ' ';
    text += as_string(list[i], JsonLocation(location, i));
  }
}

}  // namespace

JsonDocuments::JsonDocuments(const std::filesystem::path& path, std::string text_field)
    : DocumentReader(path), field_(std::move(text_field)) {
  if (!field_.empty()) form_ = Form::text;
}

bool JsonDocuments::next(Document& document) {
  std::string_view line;
  do {
    if (!lines_.next(line)) return false;
  } while (line.find_first_not_of(" \t\r") == std::string_view::npos);
  const std::string name = lines_.location();
  const JsonLocation location(name);
  const Json object = parse_line(line, name);
  if (form_ == Form::undecided) decide(as_object(object, location), location);
  const Json& value = member(object, field_, location);
  const JsonLocation value_location(location, field_);
  document.text.clear();
  document.ids.clear();
  document.has_ids = form_ == Form::ids;
  document.line = lines_.number();
  if (form_ == Form::ids) take_ids(value, value_location, document.ids);
  if (form_ == Form::text) document.text = as_string(value, value_location);
  if (form_ == Form::moves) join_moves(value, value_location, document.text);
  return true;
}

void JsonDocuments::decide(const Json& object, const JsonLocation& location) {
  for (const auto& [form, field] : {std::pair{Form::ids, ids_field}, std::pair{Form::text, default_text_field},
                                    std::pair{Form::moves, moves_field}}) {
    if (!object.contains(field)) continue;
    form_ = form;
    field_ = field;
    return;
  }
  location.fail("none of the keys 'text', 'input_ids' and 'Moves'; give the one with the text by " +
                setting("text-field"));
}

}  // namespace mylos::data
