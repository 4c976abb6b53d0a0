#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text/python_json.hpp"

/// Values of templates: JSON with Python's semantics. Functions throw TemplateError where Python would raise an error.
namespace mylos::data::jinja {

/// An error of a template, without its line, which the one who reads or runs the template adds.
struct TemplateError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class... Parts>
[[noreturn]] void refuse(fmt::format_string<Parts...> format, Parts&&... parts) {
  throw TemplateError(fmt::format(format, std::forward<Parts>(parts)...));
}

using Json = OrderedJson;
/// Null: undefined. A tuple is a list, and a namespace a dict. Shared, also as a part of a list or dict.
using Value = std::shared_ptr<const Json>;
using Values = std::vector<Value>;

inline Value from_json(Json json) { return std::make_shared<const Json>(std::move(json)); }
/// Returns about as many bytes as the text of a value has. Throw TemplateError for what is larger than 16 MiB, or nests
/// deeper than 100 levels.
void ensure_weight(std::size_t weight);
std::size_t weight_of(const Json& json, std::size_t depth = 0);
bool is_number(const Value& value);
bool is_true(const Value& value);
bool is_equal(const Value& a, const Value& b);
/// Return what a list, dict or namespace holds, and a list. Throw TemplateError for what is undefined.
const Json& defined(const Value& value);
Json list_of(const Values& values);
/// str(), empty if undefined; repr(), or json.dumps(ensure_ascii=False, indent=indent), -1: on one line.
std::string text_of(const Value& value);
std::string written(const Json& json, bool is_json, int indent = -1);
/// Returns what iteration yields: of a string its characters, of a dict its keys, of undefined nothing.
Values items_of(const Value& value);
std::size_t length_of(const Value& value);
/// value[key], undefined if it does not exist; value[start:stop:step], where undefined and None are defaults.
Value item_of(const Value& value, const Value& key);
Json slice_of(const Value& value, const Value& start, const Value& stop, const Value& step);
/// A binary operator: + - * / // % ~ == != < > <= >= in, not in.
Json operate(std::string_view symbol, const Value& a, const Value& b);
/// Return the content, if the type is right; the error names `what`.
std::int64_t as_integer(const Value& value, std::string_view what);
const std::string& as_text(const Value& value, std::string_view what);

}  // namespace mylos::data::jinja
