#pragma once

#include <ctime>
#include <deque>
#include <map>

#include "data/jinja/value.hpp"

/// Filters, tests, methods and functions of templates, and the state that they are called in.
namespace mylos::data::jinja {

struct Arguments {
  Values positional = {};
  std::vector<std::pair<std::string, Value>> named = {};
  /// Returns a value for each parameter, undefined if it is left out. Throws TemplateError if one of the first
  /// `required` is left out, and for other arguments.
  Values bind(const std::vector<std::string>& parameters, std::size_t required = 0) const;
};

struct Scope {
  std::shared_ptr<Scope> parent = nullptr;
  std::map<std::string, Value, std::less<>> variables = {};

  /// Returns the variable in this scope or the nearest around it that has it, or null.
  Value* find(const std::string& name);
};

/// A rendering.
struct Run {
  std::string text = {};
  std::vector<std::pair<std::size_t, std::size_t>> generated = {};
  std::string* out = &text;  ///< where output goes; that of macros and `set` blocks elsewhere
  std::shared_ptr<Scope> scope = std::make_shared<Scope>();
  std::deque<Object> namespaces = {};
  std::tm now = {};
  std::size_t line = 0, depth = 0, steps = 0;
  enum { nothing, turn, loop } leaving = nothing;

  /// Counts a step and one for every 64 bytes. Throws TemplateError when they were too many.
  void spend(std::size_t bytes = 0);
  /// Counts a new value by its size.
  Value counted(Value value);
  void write(const Value& value);
};

/// Return a filter, test, function, or method of "str" or "dict" as a function, whose first argument is what it is
/// applied to; if there is none, undefined, and a TemplateError.
Value find_builtin(const std::string& kind, const std::string& name);
Value get_builtin(const std::string& kind, const std::string& name);
/// Returns value.name: a method of a string or dict, or else a member.
Value attribute_of(const Value& value, const std::string& name);

}  // namespace mylos::data::jinja
