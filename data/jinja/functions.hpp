#pragma once

#include <ctime>
#include <functional>
#include <map>

#include "data/jinja/value.hpp"

/// Filters, tests, methods and functions of templates, and the state that they are called in.
namespace mylos::data::jinja {

/// The error of raise_exception.
struct RaisedError : TemplateError {
  using TemplateError::TemplateError;
};

struct Arguments {
  Values positional = {};
  std::vector<std::pair<std::string, Value>> named = {};
  /// Returns a value for each parameter, whose names are separated by spaces; those left out are undefined. Throws
  /// TemplateError if one of the first `required` is left out, and for other arguments.
  Values bind(std::string_view parameters, std::size_t required = 0) const;
  Arguments without_first(std::size_t count) const;
};

struct Scope {
  Scope* parent = nullptr;
  std::map<std::string, Value, std::less<>> variables = {};
};

/// A rendering.
struct Run {
  std::string text = {};
  std::vector<std::pair<std::size_t, std::size_t>> generated = {};
  std::string* out = &text;  ///< where output goes; that of macros and `set` blocks elsewhere
  Scope globals = {};
  Scope* scope = &globals;
  std::map<std::string, std::function<std::string(const Arguments&)>, std::less<>> macros = {};
  std::tm now = {};
  std::size_t line = 0, depth = 0, steps = 0;
  enum { nothing, turn, loop } leaving = nothing;

  /// Counts a step and one for every 64 bytes. Throws TemplateError when they were too many.
  void spend(std::size_t bytes = 0);
  /// Counts a new value by its size.
  Value make(Json json);
};

struct Call {
  Run& run;
  std::string_view name;
  const Value& self;
  const Arguments& arguments;
  Values given;  ///< the arguments bound to the parameters, unless these are "*"
};

struct Builtin {
  std::string_view kind;   ///< filter, test, str or dict (of a method), or function
  std::string_view names;  ///< separated by spaces
  std::string_view parameters;
  std::size_t required;
  Json (*function)(const Call& call);
};

/// Return what has this kind and name; if there is none, null, and a TemplateError.
const Builtin* find_builtin(std::string_view kind, std::string_view name);
const Builtin& get_builtin(std::string_view kind, std::string_view name);
/// Calls it; `self` is what a filter, test or method is applied to.
Value apply(const Builtin& builtin, std::string_view name, Run& run, const Value& self, const Arguments& arguments);

}  // namespace mylos::data::jinja
