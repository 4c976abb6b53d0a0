#pragma once

#include "data/jinja/functions.hpp"
#include "data/jinja/reader.hpp"

/// Expressions of templates, as functions that evaluate them.
namespace mylos::data::jinja {

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
  Code read_member(const Code& value);
  Code read_subscript(const Code& value);
  Code read_filters(Code value);

  std::string name_ = {};  ///< the last variable or member, for errors
  bool uses_caller_ = false;
};

}  // namespace mylos::data::jinja
