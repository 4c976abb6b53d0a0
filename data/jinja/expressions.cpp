#include "data/jinja/expressions.hpp"

#include <algorithm>

namespace mylos::data::jinja {
namespace {

Value look_up(const Scope* scope, const std::string& name) {
  for (; scope != nullptr; scope = scope->parent) {
    if (const auto found = scope->variables.find(name); found != scope->variables.end()) return found->second;
  }
  // Templates ask whether functions are defined.
  return find_builtin("function", name) != nullptr ? from_json("function " + name) : nullptr;
}

}  // namespace

Code ExpressionParser::list_of(const Codes& items) const {
  return eager(items, [](Run& run, const Values& values) { return run.make(jinja::list_of(values)); });
}

Code ExpressionParser::read_tuple() {
  Codes items(1, read_expression());
  if (!is_next(",")) return items.front();
  while (accept(",") && !is_next(")")) items.push_back(read_expression());
  return list_of(items);
}

Code ExpressionParser::read_expression() {
  const std::size_t level = level_;
  enter();
  Code value = read_binary(1);
  while (accept("if")) {
    enter();
    const Code condition = read_binary(1), otherwise = accept("else") ? read_expression() : Code();
    value = make([=](Run& run) { return is_true(condition(run)) ? value(run) : otherwise(run); });
  }
  level_ = level;
  return value;
}

Code ExpressionParser::read_binary(int least) {
  static const std::vector<std::pair<std::string_view, int>> operators = {
      {"or", 1},  {"and", 2}, {"==", 4}, {"!=", 4}, {"<=", 4}, {">=", 4}, {"<", 4}, {">", 4}, {"in", 4},
      {"not", 4}, {"+", 5},   {"-", 5},  {"~", 6},  {"*", 7},  {"//", 7}, {"/", 7}, {"%", 7}};
  const std::size_t level = level_;
  Code left = read_filters(read_unary());
  for (bool was_comparison = false; true;) {
    const auto found = std::ranges::find_if(operators, [&](const auto& each) { return is_next(each.first); });
    if (found == operators.end() || found->second < least) break;
    enter();
    auto [symbol, binding] = *found;
    expect(symbol);
    if (symbol == "not") expect("in");
    if (symbol == "not") symbol = "not in";
    if (std::exchange(was_comparison, binding == 4) && binding == 4) refuse("chained comparisons are not supported");
    const Code right = read_binary(binding + 1);
    if (binding <= 2) {
      left = make([=, is_and = symbol == "and"](Run& run) {
        const Value value = left(run);
        return is_true(value) == is_and ? right(run) : value;
      });
    } else {
      left = eager({left, right}, [symbol](Run& run, const Values& values) {
        for (const Value& each : values) run.spend(each ? weight_of(*each) : 0);
        return run.make(operate(symbol, values[0], values[1]));
      });
    }
  }
  level_ = level;
  return left;
}

Code ExpressionParser::read_unary() {
  const std::size_t level = level_;
  enter();
  Code value;
  if (accept("not")) {
    const Code operand = read_binary(4);
    value = eager({operand}, [](Run&, const Values& values) { return from_json(!is_true(values[0])); });
  } else if (const bool is_minus = accept("-"); is_minus || accept("+")) {
    const Code operand = read_unary();
    value = eager({operand}, [is_minus](Run& run, const Values& values) {
      return run.make(operate("*", values[0], from_json(is_minus ? -1 : 1)));
    });
  } else {
    value = read_postfix(read_primary());
  }
  level_ = level;
  return value;
}

Code ExpressionParser::read_primary() {
  skip_spaces();
  std::string text;
  bool is_text = false;
  for (; peek() == '"' || peek() == '\''; skip_spaces()) {
    text += read_string();
    is_text = true;
  }
  if (is_text) return constant(text);
  if (is_digit(peek())) return constant(read_number());
  if (accept("(")) {
    if (accept(")")) return list_of({});
    const Code value = read_tuple();
    expect(")");
    return value;
  }
  Codes items;
  if (accept("[")) {
    while (has_item(items.empty(), "]")) items.push_back(read_expression());
    return list_of(items);
  }
  if (accept("{")) {
    while (has_item(items.empty(), "}")) {
      if (items.size() >= 2000) refuse("a dict of more than 1000 members is not supported");
      items.push_back(read_expression());
      expect(":");
      items.push_back(read_expression());
    }
    return eager(items, [](Run& run, const Values& values) {
      Json dict = Json::object();
      for (std::size_t i = 0; i < values.size(); i += 2)
        dict[as_text(values[i], "a key of a dict")] = defined(values[i + 1]);
      return run.make(std::move(dict));
    });
  }
  const std::string name = read_name();
  if (is_one_of(name, {"true", "True", "false", "False"})) return constant(name == "true" || name == "True");
  if (is_one_of(name, {"none", "None"})) return constant(nullptr);
  if (is_one_of(name, {"cycler", "joiner", "lipsum", "dict", "caller", "varargs", "kwargs", "self", "super"})) {
    refuse("'{}' is not supported", name);
  }
  if (is_next("(")) return read_call(name);
  return make([name](Run& run) { return look_up(run.scope, name); });
}

Code ExpressionParser::read_call(const std::string& name) {
  const Builtin* builtin = find_builtin("function", name);
  return with_arguments(Code(), [=](Run& run, const Value&, const Arguments& arguments) {
    const auto macro = run.macros.find(name);
    if (macro != run.macros.end()) return run.make(macro->second(arguments));
    if (builtin == nullptr) refuse("'{}' is no macro or function", name);
    return apply(*builtin, name, run, nullptr, arguments);
  });
}

Code ExpressionParser::read_postfix(Code value) {
  while (true) {
    if (accept(".")) {
      const std::string name = read_name();
      if (!is_next("(") && find_builtin("dict", name)) refuse("'{}' is a method: call it, or write ['{}']", name, name);
      value = is_next("(") ? read_method(value, name) : member_of(value, constant(name));
    } else if (accept("[")) {
      value = read_subscript(value);
    } else {
      return value;
    }
    enter();
  }
}

Code ExpressionParser::member_of(const Code& value, const Code& key) const {
  return eager({value, key}, [](Run& run, const Values& values) {
    const bool is_long = values[0] && values[0]->is_string();
    run.spend(is_long ? as_text(values[0], "").size() : 0);
    return item_of(values[0], values[1]);
  });
}

Code ExpressionParser::read_method(const Code& value, const std::string& name) {
  const Builtin *of_str = find_builtin("str", name), *of_dict = find_builtin("dict", name);
  if (of_str == nullptr && of_dict == nullptr) refuse("the method '{}' is not supported", name);
  return with_arguments(value, [=](Run& run, const Value& self, const Arguments& arguments) {
    const Builtin* method = self && self->is_string() ? of_str : self && self->is_object() ? of_dict : nullptr;
    if (method == nullptr) refuse("a value has no method '{}'", name);
    return apply(*method, name, run, self, arguments);
  });
}

Code ExpressionParser::read_subscript(const Code& value) {
  Codes parts = {value};
  bool is_slice = false;
  while (parts.size() < 4) {
    parts.push_back(is_next(":") || is_next("]") ? Code() : read_expression());
    if (!accept(":")) break;
    is_slice = true;
  }
  expect("]");
  if (!is_slice) return member_of(value, parts[1]);
  parts.resize(4);
  return eager(parts, [](Run& run, const Values& values) {
    if (values[0]) run.spend(values[0]->is_string() ? as_text(values[0], "").size() : 0);
    return run.make(slice_of(values[0], values[1], values[2], values[3]));
  });
}

Code ExpressionParser::read_filters(Code value) {
  while (true) {
    const bool is_test = accept("is");
    if (!is_test && !accept("|")) return value;
    enter();
    const bool is_not = is_test && accept("not");
    const std::string name = read_name();
    const Builtin& builtin = get_builtin(is_test ? "test" : "filter", name);
    const auto call = [=, &builtin](Run& run, const Value& self, const Arguments& arguments) {
      const Value result = apply(builtin, name, run, self, arguments);
      return is_not ? from_json(!is_true(result)) : result;
    };
    if (is_test && builtin.required > 0 && !is_next("(")) {
      const Code operand = read_postfix(read_primary());
      value = eager({value, operand}, [=](Run& run, const Values& values) {
        return call(run, values[0], {{values[1]}, {}});
      });
    } else {
      value = with_arguments(value, call);
    }
  }
}

}  // namespace mylos::data::jinja
