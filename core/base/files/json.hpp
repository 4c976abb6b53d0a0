#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

/// JSON files, with one-line errors that give the file, the line and the path to the value.
namespace mylos {

class FileReader;
using Json = nlohmann::json;

/// Maximum nesting depth of lists and objects. nlohmann::json copies and prints values recursively, so a deeply nested
/// file would overflow the stack. Only core/base/files/json.cpp calls the library's own parser.
inline constexpr std::size_t max_json_depth = 64;

/// Parses `text`; `name` is its file in errors. Throws "<name>: not JSON at line L, column C: ...", or "<name>: nests
/// deeper than 64 levels at ..." before any value is built.
Json parse_json(std::string_view text, std::string_view name);
/// Does the same, and keeps the order of keys.
nlohmann::ordered_json parse_ordered_json(std::string_view text, std::string_view name);
/// The same, and calls `on_key` for each key of the outermost object, in order of appearance, including repeated keys.
Json parse_json(std::string_view text, std::string_view name, const std::function<void(const std::string&)>& on_key);
/// The same, and keeps only the values for which `watch` returns true (nlohmann's callback), so that long lists can be
/// read without a value for each element.
Json parse_json(std::string_view text, std::string_view name, const Json::parser_callback_t& watch);

/// Parses `text`; returns a discarded value if it is not JSON or nests too deeply.
Json try_parse_json(std::string_view text);
nlohmann::ordered_json try_parse_ordered_json(std::string_view text);

/// Returns whether parse_json would accept `text`, without building the value.
bool is_json(std::string_view text);

/// Returns a string as it is and any other value as JSON, for use in messages.
template <class AnyJson>
std::string plain_text(const AnyJson& value) {
  return value.is_string() ? value.template get<std::string>() : value.dump();
}

/// Reads a UTF-8 JSON file; errors are those of read_text_file and parse_json.
Json read_json(const FileReader& files, const std::filesystem::path& path);
/// Does the same for a file that only this process needs.
Json read_json(const std::filesystem::path& path);

/// The location of a value in a document, formatted only if there is an error to report. A location refers to its
/// parent, which must outlive it.
class JsonLocation {
 public:
  explicit JsonLocation(std::string_view file) : file_(file) {}
  JsonLocation(const JsonLocation& parent, std::string_view key) : parent_(&parent), key_(key) {}
  JsonLocation(const JsonLocation& parent, std::size_t index) : parent_(&parent), index_(index) {}
  JsonLocation(const JsonLocation&& parent, std::string_view key) = delete;
  JsonLocation(const JsonLocation&& parent, std::size_t index) = delete;

  /// Throws "<file>: data[3].paragraphs[0].context: <problem>".
  [[noreturn]] void fail(std::string_view problem) const;
  /// Returns "<file>: data[3].paragraphs[0].context".
  std::string text() const;

 private:
  const JsonLocation* append_path(std::string& path) const;

  const JsonLocation* parent_ = nullptr;
  std::string_view file_;
  std::string_view key_;
  std::size_t index_ = 0;
};

/// Return the value as this type, or throw, for example "...: expected a string, found a number".
const std::string& as_string(const Json& value, const JsonLocation& location);
const Json& as_list(const Json& value, const JsonLocation& location);
const Json& as_object(const Json& value, const JsonLocation& location);
bool as_bool(const Json& value, const JsonLocation& location);
double as_number(const Json& value, const JsonLocation& location);
/// Returns a non-negative integer.
std::size_t as_count(const Json& value, const JsonLocation& location);
/// Returns an id: a string, or an integer from -2^63 to 2^64 - 1 as decimal digits. Larger integers are errors because
/// they lose digits when JSON is parsed; so are numbers with a fraction or an exponent.
std::string as_id(const Json& value, const JsonLocation& location);

/// Returns the value of `key`, or null if it is absent. Throws if `object` is not an object.
const Json* find_member(const Json& object, std::string_view key, const JsonLocation& location);
/// Like find_member, but throws if `key` is absent.
const Json& member(const Json& object, std::string_view key, const JsonLocation& location);
const std::string& string_member(const Json& object, std::string_view key, const JsonLocation& location);
const Json& list_member(const Json& object, std::string_view key, const JsonLocation& location);
std::size_t count_member(const Json& object, std::string_view key, const JsonLocation& location);

}  // namespace mylos
