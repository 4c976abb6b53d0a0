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
  Code constant(const Json& json) const {
    return make([value = from_json(json)](Run&) { return value; });
  }
  Code write(const Code& value) const {
    return make([value](Run& run) {
      const std::string text = text_of(value(run));
      run.spend(text.size());
      *run.out += text;
      ensure_weight(run.out->size());
    });
  }
  /// Evaluates the parts, then calls `function` with the values.
  template <class Function>
  Code eager(const Codes& parts, const Function& function) const {
    return make([parts, function](Run& run) {
      Values values;
      for (const Code& part : parts) values.push_back(part(run));
      return function(run, values);
    });
  }

  /// Reads the arguments of a call, if there are any, and makes code that calls `function` with them and `self`.
  template <class Function>
  Code with_arguments(const Code& self, const Function& function) {
    Codes parts = {self};
    std::vector<std::string> names;
    for (bool is_first = true, has_any = accept("("); has_any && has_item(is_first, ")"); is_first = false) {
      skip_spaces();
      const std::size_t begin = at_, begin_line = line;
      std::string name = is_letter(peek()) && !is_digit(peek()) ? read_name() : "";
      if (name.empty() || !accept("=")) {
        at_ = begin;
        line = begin_line;
        name.clear();
      }
      if (names.size() >= 100) refuse("more than 100 arguments are not supported");
      names.push_back(name);
      parts.push_back(read_expression());
    }
    return eager(parts, [=](Run& run, const Values& values) {
      Arguments arguments;
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i].empty()) arguments.positional.push_back(values[i + 1]);
        if (!names[i].empty()) arguments.named.emplace_back(names[i], values[i + 1]);
      }
      return function(run, values[0], arguments);
    });
  }

  Code list_of(const Codes& items) const;
  /// Reads an expression, or several as a tuple.
  Code read_tuple();
  Code read_expression();
  /// Reads operands between operators that bind at least as `least` does.
  Code read_binary(int least);
  Code read_unary();
  Code read_primary();
  Code read_call(const std::string& name);
  /// Reads members, subscripts, slices and calls of methods.
  Code read_postfix(Code value);
  Code member_of(const Code& value, const Code& key) const;
  Code read_method(const Code& value, const std::string& name);
  Code read_subscript(const Code& value);
  Code read_filters(Code value);
};

}  // namespace mylos::data::jinja
