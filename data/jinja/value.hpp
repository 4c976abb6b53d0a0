#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text/python_json.hpp"

/// Values of templates, with Python's semantics. Functions throw TemplateError where Python would raise an error.
namespace mylos::data::jinja {

/// An error of a template, without its line, which the one who reads or runs the template adds.
struct TemplateError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class... Parts>
[[noreturn]] void refuse(fmt::format_string<Parts...> format, Parts&&... parts) {
  throw TemplateError(fmt::format(format, std::forward<Parts>(parts)...));
}

struct Arguments;
struct Object;
struct Run;
using Json = OrderedJson;

/// A value, shared. Null: undefined. Constructors throw TemplateError for what is larger than 16 MiB, or nests deeper
/// than 100 levels.
struct Value : std::shared_ptr<const Object> {
  using std::shared_ptr<const Object>::shared_ptr;
  Value(const Json& json);
  Value(Object&& object);
  Value(const std::string& text);
  Value(const char* text);
  template <class Number>
  requires std::is_arithmetic_v<Number> Value(Number number);
};
using Values = std::vector<Value>;
using Function = std::function<Value(Run& run, const Arguments& arguments)>;

struct Object {
  /// An object has members only: `loop`, or a namespace. A view is a range, or what keys(), values() and items() give.
  enum Kind { scalar, list, tuple, dict, object, function, view, generator };
  Kind kind = scalar;
  Json json = {};             ///< a scalar: None, a bool, a number or a string
  Values keys = {};           ///< of a dict or object
  mutable Values items = {};  ///< the members of keys, or what iteration yields, which takes them from a generator
  Function call = {};
  Object* space = nullptr;  ///< what holds the members of a namespace, which alone can change
  std::size_t weight = 0, depth = 0;
};

template <class Number>
requires std::is_arithmetic_v<Number> Value::Value(Number number) : Value(Json(number)) {}

Value list_of(Values items, Object::Kind kind = Object::list);
void ensure_weight(std::size_t weight);
std::size_t weight_of(const Value& value);
/// Sets a member of a dict or object.
void set_member(Object& object, const Value& key, const Value& value);

bool is_of(const Value& value, std::initializer_list<Object::Kind> kinds);
bool is_text(const Value& value);
bool is_number(const Value& value);
/// Returns whether a value is undefined or None.
bool is_absent(const Value& value);
bool is_true(const Value& value);
bool is_equal(const Value& a, const Value& b);

/// How a value is written: by repr(), or as json.dumps does with these arguments.
struct Style {
  bool is_json = false, is_ascii = false, sorts_keys = false;
  std::optional<std::string> indent = {};
  std::string comma = ", ", colon = ": ";
};
std::string written(const Value& value, const Style& style = {});
/// str(), empty if undefined.
std::string text_of(const Value& value);

/// Returns what iteration yields: of a string its characters, of a dict its keys, of undefined nothing.
Values items_of(const Value& value);
std::size_t length_of(const Value& value);
/// value[key], undefined if it does not exist; value[start:stop:step], where undefined and None are defaults.
Value item_of(const Value& value, const Value& key);
Value slice_of(const Value& value, const Value& start, const Value& stop, const Value& step);
/// A binary operator: + - * / // % ~ == != < > <= >= in, not in.
Value operate(std::string_view symbol, const Value& a, const Value& b);
/// Return the content, if the type is right; the error names `what`.
std::int64_t as_integer(const Value& value, std::string_view what);
const std::string& as_text(const Value& value, std::string_view what);

}  // namespace mylos::data::jinja
