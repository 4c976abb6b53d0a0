#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

/// JSON files read with errors of one line that say where: the file, the line, the path to the value.
namespace mylos {

using Json = nlohmann::json;

/// How deeply lists and objects may nest. nlohmann::json copies and prints values recursively, so that a deep one from
/// a file would exhaust the stack. Nothing outside core/base/json.cpp calls the library's own parser.
inline constexpr std::size_t max_json_depth = 64;

/// Parses `text`; `name` is its file in errors. Throws "<name>: not JSON at line L, column C: ...", and
/// "<name>: nests deeper than 64 levels at ..." before anything is built.
Json parse_json(std::string_view text, std::string_view name);
/// The same, and calls `on_key` for each key of the outermost object, in the order of the text and for repeated keys
/// too.
Json parse_json(std::string_view text, std::string_view name, const std::function<void(const std::string&)>& on_key);

/// Parses `text`; returns a discarded value where it is not JSON or nests too deeply.
Json try_parse_json(std::string_view text);
nlohmann::ordered_json try_parse_ordered_json(std::string_view text);

/// Whether parse_json would take `text`, found without building the value.
bool is_json(std::string_view text);

/// A string as it stands, and any other value as JSON: as it is typed, and as a message shows it.
template <class AnyJson>
std::string plain_text(const AnyJson& value) {
  return value.is_string() ? value.template get<std::string>() : value.dump();
}

/// Reads a UTF-8 JSON file; errors are those of read_text_file and parse_json.
Json read_json(const std::filesystem::path& path);

/// Where a value stands in a document, spelt out only when there is an error to report. A place refers to its parent,
/// which must outlive it.
class JsonLocation {
 public:
  explicit JsonLocation(std::string_view file) : file_(file) {}
  JsonLocation(const JsonLocation& parent, std::string_view key) : parent_(&parent), key_(key) {}
  JsonLocation(const JsonLocation& parent, std::size_t index) : parent_(&parent), index_(index) {}
  JsonLocation(const JsonLocation&& parent, std::string_view key) = delete;
  JsonLocation(const JsonLocation&& parent, std::size_t index) = delete;

  /// Throws "<file>: data[3].paragraphs[0].context: <problem>".
  [[noreturn]] void fail(std::string_view problem) const;

 private:
  const JsonLocation* append_path(std::string& path) const;

  const JsonLocation* parent_ = nullptr;
  std::string_view file_;
  std::string_view key_;
  std::size_t index_ = 0;
};

/// The value as this type; throws "...: expected a string, found a number" and the like.
const std::string& as_string(const Json& value, const JsonLocation& location);
const Json& as_list(const Json& value, const JsonLocation& location);
const Json& as_object(const Json& value, const JsonLocation& location);
bool as_bool(const Json& value, const JsonLocation& location);
double as_number(const Json& value, const JsonLocation& location);
/// A whole number that is not negative.
std::size_t as_count(const Json& value, const JsonLocation& location);
/// An id: a string, or a whole number from -2^63 to 2^64 - 1, which becomes its digits. Larger ones lose digits when
/// JSON is parsed, so they are errors, as are numbers with a fraction or an exponent.
std::string as_id(const Json& value, const JsonLocation& location);

/// The value of `key` in an object, null where it is absent. Throws where `object` is none.
const Json* find_member(const Json& object, std::string_view key, const JsonLocation& location);
/// The same, throwing where it is absent.
const Json& member(const Json& object, std::string_view key, const JsonLocation& location);
const std::string& string_member(const Json& object, std::string_view key, const JsonLocation& location);
const Json& list_member(const Json& object, std::string_view key, const JsonLocation& location);
std::size_t count_member(const Json& object, std::string_view key, const JsonLocation& location);

}  // namespace mylos
