#pragma once

#include <initializer_list>

#include "data/jinja/functions.hpp"

/// Expressions of templates, as functions that evaluate them.
namespace mylos::data::jinja {

using Names = std::initializer_list<std::string_view>;
inline bool is_one_of(std::string_view text, Names names) { return std::ranges::find(names, text) != names.end(); }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }

/// Reads the characters of a template. Its functions throw TemplateError for what they do not find.
class Reader {
 public:
  std::size_t line = 1;  ///< where it is at, also of an error

  explicit Reader(std::string_view source);

 protected:
  std::string_view rest() const;
  char peek(std::size_t ahead = 0) const;
  void advance(std::size_t count);
  void skip_spaces();
  /// Limits how deep the parser recurses, and so how deep code nests.
  void enter();
  /// Returns whether a word or symbol, and not a longer one, is next after white space.
  bool is_next(std::string_view text);
  bool accept(std::string_view text);
  void expect(std::string_view text);
  /// Returns whether an item of a list follows, which `close` ends.
  bool has_item(bool is_first, std::string_view close);
  std::string read_name();
  /// Reads text and comments up to the next tag, whose beginning is then next.
  std::string read_text();
  /// Reads the end of a tag and the white space after it that the sign before it or trim_blocks removes.
  void end_tag(std::string_view end);
  std::string read_string();
  /// Reads an integer, or else a real number.
  Json read_number(bool is_index = false);

  std::string source_;
  std::size_t at_ = 0, level_ = 0;
  bool begins_line_ = true;
};

/// A statement or expression as a function that runs it; a statement has no value.
struct Code {
  std::shared_ptr<const std::function<Value(Run&)>> function = nullptr;
  std::size_t line = 0;

  Value operator()(Run& run) const {
    if (function) run.line = line;
    run.spend();
    if (++run.depth > 500) refuse("macros call each other too deeply");
    Value value = function ? (*function)(run) : nullptr;
    --run.depth;
    return value;
  }
};

using Codes = std::vector<Code>;
Values evaluated(const Codes& codes, Run& run);

/// A call of a function with the arguments (value, *values, name=value, **members).
struct CallCode {
  struct Argument {
    std::string name;  ///< or "*", "**"; empty of a positional one
    Code value;
  };
  Code function = {};
  std::string name = {};  ///< of the function, for errors
  std::vector<Argument> given = {};

  Value operator()(Run& run) const;
};

class ExpressionParser : public Reader {
 public:
  using Reader::Reader;

 protected:
  /// Makes code of a function whose result is a value or nothing.
  template <class Function>
  Code make(Function function) const {
    auto call = [function = std::move(function)](Run& run) -> Value {
      if constexpr (!std::is_void_v<decltype(function(run))>) return function(run);
      function(run);
      return nullptr;
    };
    return {std::make_shared<const std::function<Value(Run&)>>(std::move(call)), line};
  }
  Code constant(const Value& value) const;
  Code variable(const std::string& name);
  Code item(const Code& value, const Code& key) const;
  Code sequence(const Codes& items, Object::Kind kind) const;
  /// Reads an expression, or several as a tuple.
  Code read_tuple();
  Code read_expression();
  /// Reads operands between operators that bind at least as `least` does.
  Code read_binary(int least);
  Code read_unary();
  Code read_primary();
  Code read_dict();
  /// Adds the arguments in parentheses, if there are any.
  CallCode read_arguments(CallCode call);
  /// Reads members, subscripts, slices and calls.
  Code read_postfix(Code value);
  Code read_subscript(const Code& value);
  Code read_filters(Code value);

  std::string name_ = {};  ///< the last variable or member, for errors
  bool uses_caller_ = false;
};

}  // namespace mylos::data::jinja
