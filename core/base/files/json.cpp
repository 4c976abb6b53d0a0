#include "core/base/files/json.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/files/file_reader.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/unicode.hpp"

namespace mylos {
namespace {

/// Returns nlohmann's explanation without its own tag and position.
std::string_view explanation(std::string_view what) {
  for (const std::string_view mark : {"parse error at line ", "parse error: "}) {
    const std::size_t at = what.find(mark);
    const std::size_t colon = at == std::string_view::npos ? at : what.find(": ", at);
    if (colon != std::string_view::npos) return what.substr(colon + 2);
  }
  const std::size_t tag = what.find("] ");
  return tag == std::string_view::npos ? what : what.substr(tag + 2);
}

/// Formats the position of byte `byte` as "line 3, column 7", both counted from 1.
std::string position(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0: the first line
  const std::size_t column = 1 + count_code_points(before.substr(line_start));
  return fmt::format("line {}, column {}", line, column);
}

[[noreturn]] void fail_at(std::string_view text, std::size_t byte, std::string_view name, std::string_view why) {
  fail(fmt::format("{}: not JSON at {}: {}", name, position(text, byte), why));
}

/// Returns the offset of the first bracket that nests too deeply; npos if there is none. Brackets in strings do not
/// count. Up to the first syntax error, where the parser stops, this scan agrees with the parser.
std::size_t find_too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char character = text[i];
    if (character == '"') {
      in_string = !in_string;
    } else if (in_string) {
      if (character == '\\') ++i;
    } else if (character == '[' || character == '{') {
      if (++depth > max_json_depth) return i;
    } else if ((character == ']' || character == '}') && depth > 0) {
      --depth;
    }
  }
  return std::string_view::npos;
}

bool is_too_deep(std::string_view text) { return find_too_deep(text) != std::string_view::npos; }

/// Checks the depth, calls `parse` and rewrites its errors.
template <class Parse>
auto parse_with(const Parse& parse, std::string_view text, std::string_view name) {
  if (const std::size_t byte = find_too_deep(text); byte != std::string_view::npos) {
    fail(fmt::format("{}: nests deeper than {} levels at {}", name, max_json_depth, position(text, byte)));
  }
  try {
    return parse();
  } catch (const Json::parse_error& error) {
    // `byte` is the parser's position, counted from 1; a position beyond the text means that the input ended too early.
    if (error.byte > text.size()) fail_at(text, text.size(), name, "the text ends too early; is the file truncated?");
    fail_at(text, error.byte - 1, name, printable(explanation(error.what())));
  } catch (const Json::exception& error) {
    fail(fmt::format("{}: not JSON: {}", name, printable(explanation(error.what()))));
  }
}

template <class AnyJson>
AnyJson parse_or_discard(std::string_view text) {
  if (is_too_deep(text)) return AnyJson(AnyJson::value_t::discarded);
  return AnyJson::parse(text, nullptr, false);
}

[[noreturn]] void fail_type(const Json& value, std::string_view expected, const JsonLocation& location) {
  location.fail(fmt::format("expected {}, found {}", expected, value.is_array() ? "list" : value.type_name()));
}

}  // namespace

Json parse_json(std::string_view text, std::string_view name) {
  return parse_with([&] { return Json::parse(text); }, text, name);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, std::string_view name) {
  return parse_with([&] { return nlohmann::ordered_json::parse(text); }, text, name);
}

Json parse_json(std::string_view text, std::string_view name, const std::function<void(const std::string&)>& on_key) {
  const Json::parser_callback_t watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth == 1 && event == Json::parse_event_t::key) on_key(value.get_ref<const std::string&>());
    return true;
  };
  return parse_json(text, name, watch);
}

Json parse_json(std::string_view text, std::string_view name, const Json::parser_callback_t& watch) {
  return parse_with([&] { return Json::parse(text, watch); }, text, name);
}

Json try_parse_json(std::string_view text) { return parse_or_discard<Json>(text); }

nlohmann::ordered_json try_parse_ordered_json(std::string_view text) {
  return parse_or_discard<nlohmann::ordered_json>(text);
}

bool is_json(std::string_view text) { return !is_too_deep(text) && Json::accept(text); }

Json read_json(const FileReader& files, const std::filesystem::path& path) {
  return parse_json(read_text_file(files, path), path.string());
}

Json read_json(const std::filesystem::path& path) { return read_json(FileReader(), path); }

void JsonLocation::fail(std::string_view problem) const { mylos::fail(fmt::format("{}: {}", text(), problem)); }

std::string JsonLocation::text() const {
  std::string path;
  const JsonLocation* root = append_path(path);
  return path.empty() ? std::string(root->file_) : fmt::format("{}: {}", root->file_, path);
}

const JsonLocation* JsonLocation::append_path(std::string& path) const {
  if (parent_ == nullptr) return this;
  const JsonLocation* root = parent_->append_path(path);
  if (key_.empty()) {
    path += fmt::format("[{}]", index_);
  } else {
    path += fmt::format("{}{}", path.empty() ? "" : ".", key_);
  }
  return root;
}

const std::string& as_string(const Json& value, const JsonLocation& location) {
  if (!value.is_string()) fail_type(value, "string", location);
  return value.get_ref<const std::string&>();
}

const Json& as_list(const Json& value, const JsonLocation& location) {
  if (!value.is_array()) fail_type(value, "list", location);
  return value;
}

const Json& as_object(const Json& value, const JsonLocation& location) {
  if (!value.is_object()) fail_type(value, "object", location);
  return value;
}

bool as_bool(const Json& value, const JsonLocation& location) {
  if (!value.is_boolean()) fail_type(value, "boolean", location);
  return value.get<bool>();
}

double as_number(const Json& value, const JsonLocation& location) {
  if (!value.is_number()) fail_type(value, "number", location);
  return value.get<double>();
}

std::size_t as_count(const Json& value, const JsonLocation& location) {
  if (!value.is_number()) fail_type(value, "number", location);
  if (!value.is_number_unsigned()) {
    location.fail(fmt::format("expected a whole number that is not negative, found {}", value.dump()));
  }
  return value.get<std::size_t>();
}

std::string as_id(const Json& value, const JsonLocation& location) {
  if (value.is_number_integer()) return value.dump();
  if (value.is_number()) {
    location.fail(fmt::format("expected a string or a whole number of at most 64 bits, found {}", value.dump()));
  }
  if (!value.is_string()) fail_type(value, "string or whole number", location);
  return value.get<std::string>();
}

const Json* find_member(const Json& object, std::string_view key, const JsonLocation& location) {
  const auto found = as_object(object, location).find(key);
  return found == object.end() ? nullptr : &*found;
}

const Json& member(const Json& object, std::string_view key, const JsonLocation& location) {
  const Json* value = find_member(object, key, location);
  if (value == nullptr) location.fail(fmt::format("the key '{}' is missing", key));
  return *value;
}

const std::string& string_member(const Json& object, std::string_view key, const JsonLocation& location) {
  return as_string(member(object, key, location), JsonLocation(location, key));
}

const Json& list_member(const Json& object, std::string_view key, const JsonLocation& location) {
  return as_list(member(object, key, location), JsonLocation(location, key));
}

std::size_t count_member(const Json& object, std::string_view key, const JsonLocation& location) {
  return as_count(member(object, key, location), JsonLocation(location, key));
}

}  // namespace mylos
