#include "data/jinja/expressions.hpp"

#include <algorithm>

namespace mylos::data::jinja {

Values evaluated(const Codes& codes, Run& run) {
  Values values;
  for (const Code& code : codes) values.push_back(code(run));
  return values;
}

Value CallCode::operator()(Run& run) const {
  const Value callee = function(run);
  if (!callee || callee->kind != Object::function) refuse("'{}' is no macro or function", name);
  Arguments arguments;
  for (const auto& [before, code] : given) {
    const Value value = code(run);
    if (before.empty()) arguments.positional.push_back(value);
    if (!before.empty() && before[0] != '*') arguments.named.emplace_back(before, value);
    for (const Value& each : before.starts_with('*') ? items_of(value) : Values()) {
      if (before == "*") arguments.positional.push_back(each);
      if (before == "**") arguments.named.emplace_back(as_text(each, "a name of '**'"), item_of(value, each));
    }
  }
  return callee->call(run, arguments);
}

Code ExpressionParser::constant(const Value& value) const {
  return make([=](Run&) { return value; });
}

Code ExpressionParser::variable(const std::string& name) {
  if (is_one_of(name, {"cycler", "joiner", "lipsum", "varargs", "kwargs", "self", "super"}))
    refuse("'{}' is not supported", name);
  uses_caller_ |= name == "caller";
  name_ = name;
  return make([name, builtin = find_builtin("function", name)](Run& run) {
    const Value* found = run.scope->find(name);
    return found != nullptr ? *found : builtin;
  });
}

Code ExpressionParser::item(const Code& value, const Code& key) const {
  return make([=](Run& run) {
    const Value self = value(run), name = key(run);
    run.spend(is_text(self) ? as_text(self, "").size() : 0);
    return item_of(self, name);
  });
}

Code ExpressionParser::sequence(const Codes& items, Object::Kind kind) const {
  return make([=](Run& run) { return run.counted(list_of(evaluated(items, run), kind)); });
}

Code ExpressionParser::read_tuple() {
  Codes items(1, read_expression());
  if (!is_next(",")) return items.front();
  while (accept(",") && !is_next(")")) items.push_back(read_expression());
  return sequence(items, Object::tuple);
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
    std::string_view symbol = found->first;
    const int binding = found->second;
    expect(symbol);
    if (symbol == "not") expect("in");
    if (symbol == "not") symbol = "not in";
    if (std::exchange(was_comparison, binding == 4) && binding == 4) refuse("chained comparisons are not supported");
    const Code right = read_binary(binding + 1);
    left = make([=, is_logical = binding <= 2](Run& run) {
      const Value value = left(run);
      if (is_logical) return is_true(value) == (symbol == "and") ? right(run) : value;
      const Value other = right(run);
      run.spend(weight_of(value) + weight_of(other));
      return run.counted(operate(symbol, value, other));
    });
  }
  level_ = level;
  return left;
}

Code ExpressionParser::read_unary() {
  const std::size_t level = level_;
  enter();
  Code value;
  if (accept("not")) {
    value = make([operand = read_binary(4)](Run& run) { return !is_true(operand(run)); });
  } else if (const bool is_minus = accept("-"); is_minus || accept("+")) {
    value = make([operand = read_unary(), sign = Value(is_minus ? -1 : 1)](Run& run) {
      const Value number = operand(run);
      if (!is_number(number)) refuse("the operand of a sign is no number");
      return operate("*", number, sign);
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
    if (accept(")")) return sequence({}, Object::tuple);
    const Code value = read_tuple();
    expect(")");
    return value;
  }
  if (accept("[")) {
    Codes items;
    while (has_item(items.empty(), "]")) items.push_back(read_expression());
    return sequence(items, Object::list);
  }
  if (accept("{")) return read_dict();
  const std::string name = read_name();
  if (is_one_of(name, {"true", "True", "false", "False"})) return constant(name == "true" || name == "True");
  return is_one_of(name, {"none", "None"}) ? constant(Json()) : variable(name);
}

Code ExpressionParser::read_dict() {
  Codes keys, items;
  while (has_item(items.empty(), "}")) {
    if (items.size() >= 1000) refuse("a dict of more than 1000 members is not supported");
    keys.push_back(read_expression());
    expect(":");
    items.push_back(read_expression());
  }
  return make([=](Run& run) {
    Object dict{.kind = Object::dict};
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Value key = keys[i](run);
      set_member(dict, key, items[i](run));
    }
    return run.counted(std::move(dict));
  });
}

CallCode ExpressionParser::read_arguments(CallCode call) {
  for (bool is_first = true, has_any = accept("("); has_any && has_item(is_first, ")"); is_first = false) {
    if (call.given.size() > 100) refuse("more than 100 arguments are not supported");
    skip_spaces();
    const std::size_t begin = at_, begin_line = line;
    std::string before = accept("**") ? "**" : accept("*") ? "*" : "";
    if (before.empty() && is_letter(peek()) && !is_digit(peek())) before = read_name();
    if (is_letter(before[0]) && !accept("=")) {
      at_ = begin;
      line = begin_line;
      before.clear();
    }
    call.given.push_back({before, read_expression()});
  }
  return call;
}

Code ExpressionParser::read_postfix(Code value) {
  for (;; enter()) {
    const bool has_member = accept(".");
    if (has_member && is_digit(peek())) {
      value = item(value, constant(read_number(true)));
    } else if (has_member) {
      name_ = read_name();
      const bool is_method = find_builtin("str", name_) || find_builtin("dict", name_);
      if (!is_method && is_next("(")) refuse("the method '{}' is not supported", name_);
      value = make([value, name = name_](Run& run) { return attribute_of(value(run), name); });
    } else if (accept("[")) {
      value = read_subscript(value);
    } else if (is_next("(")) {
      value = make(read_arguments({value, name_}));
    } else {
      return value;
    }
  }
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
  if (!is_slice) return item(value, parts[1]);
  parts.resize(4);
  return make([=](Run& run) {
    const Values values = evaluated(parts, run);
    run.spend(weight_of(values[0]));
    return run.counted(slice_of(values[0], values[1], values[2], values[3]));
  });
}

Code ExpressionParser::read_filters(Code value) {
  while (true) {
    const bool is_test = accept("is");
    if (!is_test && !accept("|")) return value;
    enter();
    const bool is_not = is_test && accept("not");
    const std::string name = read_name();
    CallCode call{constant(get_builtin(is_test ? "test" : "filter", name)), name, {{"", value}}};
    if (is_test && find_builtin("comparison", name) && !is_next("(")) {
      call.given.push_back({"", read_postfix(read_primary())});
    } else {
      call = read_arguments(call);
    }
    value = make([=](Run& run) { return is_not ? Value(!is_true(call(run))) : call(run); });
  }
}

}  // namespace mylos::data::jinja
