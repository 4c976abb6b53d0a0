#include "data/jinja/functions.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/base/text/python_text.hpp"
#include "core/base/text/unicode.hpp"

namespace mylos::data::jinja {
namespace {

constexpr std::size_t max_steps = std::size_t{2} << 20, max_items = 100000;

struct Call {
  Run& run;
  std::string_view name;
  const Arguments& arguments;
  Value self;    ///< what a filter, test or method is applied to, or the first argument of a function
  Values given;  ///< the other arguments, bound to the parameters unless these are "*"
};
using C = const Call&;

/// A row of names with the same function. Names and kinds are separated by spaces.
struct Builtin {
  const char *kinds, *names, *parameters;  ///< of parameters, those after `self`
  std::size_t required;
  Value (*function)(C call);
};

/// trim, strip, lstrip, rstrip
Value stripped(C c) {
  const std::u32string text = decode_utf8(text_of(c.self));
  const std::u32string set = is_absent(c.given[0]) ? U"" : decode_utf8(as_text(c.given[0], "the argument of strip"));
  const auto is_kept = [&](char32_t each) {
    return is_absent(c.given[0]) ? !is_python_space(each) : set.find(each) == set.npos;
  };
  auto begin = text.begin(), end = text.end();
  if (c.name != "rstrip") begin = std::find_if(begin, end, is_kept);
  while (c.name != "lstrip" && end != begin && !is_kept(*(end - 1))) --end;
  return from_json(encode_utf8({begin, end}));
}

/// upper, lower, capitalize, title. A word of str.title begins after any other character than a letter.
template <bool of_str>
Value cased(C c) {
  std::u32string text = python_lower(decode_utf8(text_of(c.self)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t before = i == 0 ? U' ' : text[i - 1], small = before | 0x20U;
    const bool is_between =
        is_python_space(before) || std::u32string_view(U"-({[<").find(before) != std::u32string::npos;
    const bool begins = of_str ? small < 'a' || small > 'z' : is_between;
    if (c.name == "lower" || (c.name == "capitalize" && i > 0) || (c.name == "title" && !begins)) continue;
    if (text[i] >= 0x80) refuse("capitals of letters outside ASCII are not supported");
    if (text[i] < 'a' || text[i] > 'z') continue;
    if (of_str && before >= 0x80) refuse("capitals after letters outside ASCII are not supported");
    text[i] -= 'a' - 'A';
  }
  return from_json(encode_utf8(text));
}

/// str.split(separator, most), where an absent separator is white space.
std::vector<std::string> split(const std::string& text, const Value& separator, const Value& most) {
  std::int64_t left = is_absent(most) ? -1 : as_integer(most, "the count");
  std::vector<std::string> parts;
  if (is_absent(separator)) {
    const std::u32string points = decode_utf8(text);
    for (auto at = points.begin(), end = at; true; at = end) {
      at = std::find_if_not(at, points.end(), is_python_space);
      if (at == points.end()) return parts;
      end = left-- == 0 ? points.end() : std::find_if(at, points.end(), is_python_space);
      parts.push_back(encode_utf8({at, end}));
    }
  }
  const std::string& by = as_text(separator, "the separator");
  if (by.empty()) refuse("an empty separator is not supported");
  std::size_t at = 0;
  for (std::size_t end = 0; left-- != 0 && (end = text.find(by, at)) != std::string::npos; at = end + by.size()) {
    parts.push_back(text.substr(at, end - at));
  }
  parts.push_back(text.substr(at));
  return parts;
}

Value joined(Run& run, const std::vector<std::string>& parts, const std::string& separator) {
  run.spend(parts.size() * separator.size());
  return from_json(fmt::format("{}", fmt::join(parts, separator)));
}

Value joined(Run& run, const Value& list, const std::string& separator) {
  std::vector<std::string> parts;
  for (const Value& item : items_of(list)) parts.push_back(text_of(item));
  return joined(run, parts, separator);
}

Value parts_of(C c) {
  Values parts;
  for (const std::string& part : split(text_of(c.self), c.given[0], c.given[1])) parts.push_back(from_json(part));
  return list_of(std::move(parts));
}

Value replaced(C c) {
  const auto parts = split(text_of(c.self), from_json(text_of(c.given[0])), c.given[2]);
  return joined(c.run, parts, text_of(c.given[1]));
}

Value indented(C c) {
  const std::int64_t width = is_absent(c.given[0]) ? 4 : as_integer(c.given[0], "the width of indent");
  if (width < 0 || width > 100) refuse("the width {} of indent is not in 0..100", width);
  const std::string indent(static_cast<std::size_t>(width), ' ');
  auto lines = split(text_of(c.self), from_json("\n"), nullptr);
  c.run.spend(lines.size() * indent.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i == 0 ? is_true(c.given[1]) : is_true(c.given[2]) || !lines[i].empty()) lines[i].insert(0, indent);
  }
  return joined(c.run, lines, "\n");
}

/// A member by a name like "function.name", or an item by its index.
Value member_of(const Value& object, const Value& path) {
  if (is_number(path)) return item_of(object, path);
  Value value = object;
  for (const std::string& name : split(as_text(path, "the name of an attribute"), from_json("."), nullptr)) {
    value = value ? item_of(value, from_json(name)) : nullptr;
  }
  return value;
}

/// Returns the arguments of a call except the first of those given.
Arguments rest_of(C c, std::size_t count) {
  const auto begin = c.given.begin() + static_cast<std::ptrdiff_t>(std::min(count, c.given.size()));
  return {{begin, c.given.end()}, c.arguments.named};
}

Value mapped(C c) {
  const bool by_filter = !c.given.empty();
  const Values named = by_filter ? Values() : Arguments{{}, c.arguments.named}.bind("attribute default", 1);
  const Value filter = by_filter ? get_builtin("filter", as_text(c.given[0], "the filter of map")) : nullptr;
  Values results;
  for (const Value& item : is_true(c.self) ? items_of(c.self) : Values()) {
    const Value value = by_filter ? call_on(c.run, filter, item, rest_of(c, 1)) : member_of(item, named[0]);
    results.push_back(value || by_filter ? value : named[1]);
  }
  return list_of(std::move(results), Object::generator);
}

/// select, reject, selectattr, rejectattr
Value selected(C c) {
  const bool by_member = c.name.ends_with("attr");
  if (by_member && c.given.empty()) refuse("the name of an attribute is missing");
  const std::size_t at = by_member ? 1 : 0;
  const Value test = c.given.size() > at ? get_builtin("test", as_text(c.given[at], "the name of a test")) : nullptr;
  Values kept;
  for (const Value& item : is_true(c.self) ? items_of(c.self) : Values()) {
    const Value value = by_member ? member_of(item, c.given[0]) : item;
    const bool holds = is_true(test ? call_on(c.run, test, value, rest_of(c, at + 1)) : value);
    if (holds == c.name.starts_with("select")) kept.push_back(item);
  }
  return list_of(std::move(kept), Object::generator);
}

Value reversed(C c) {
  if (is_text(c.self)) return slice_of(c.self, nullptr, nullptr, from_json(-1));
  Values items = items_of(c.self);
  std::ranges::reverse(items);
  return list_of(std::move(items), Object::generator);
}

Values pairs_of(const Value& dict) {
  if (dict && dict->kind != Object::dict) refuse("only dicts have items");
  Values pairs;
  for (std::size_t i = 0; dict && i < dict->keys.size(); ++i)
    pairs.push_back(list_of({dict->keys[i], dict->items[i]}, Object::tuple));
  return pairs;
}

/// Returns the key by which sort and unique compare an item. Case does not matter in texts, unless `by_case`.
Value sort_key(const Value& item, const Value& attribute, const Value& by_case) {
  const Value value = is_absent(attribute) ? item : member_of(item, attribute);
  if (!is_text(value) || is_true(by_case)) return value;
  return from_json(encode_utf8(python_lower(decode_utf8(text_of(value)))));
}

/// sort, dictsort
Value sorted(C c) {
  const bool of_dict = c.name == "dictsort";
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : of_dict ? pairs_of(c.self) : items_of(c.self)) {
    keyed.emplace_back(sort_key(item, of_dict ? from_json(0) : c.given[2], of_dict ? nullptr : c.given[1]), item);
  }
  std::ranges::stable_sort(keyed, [is_reverse = !of_dict && is_true(c.given[0])](const auto& a, const auto& b) {
    return is_true(is_reverse ? operate("<", b.first, a.first) : operate("<", a.first, b.first));
  });
  Values items;
  for (const auto& [key, item] : keyed) items.push_back(item);
  return list_of(std::move(items));
}

Value unique(C c) {
  Values kept, keys;
  for (const Value& item : items_of(c.self)) {
    const Value key = sort_key(item, nullptr, c.given[0]);
    if (std::ranges::any_of(keys, [&](const Value& each) { return is_equal(each, key); })) continue;
    if (keys.size() >= 1000) refuse("unique of more than 1000 values is not supported");
    keys.push_back(key);
    kept.push_back(item);
  }
  return list_of(std::move(kept), Object::generator);
}

/// int and float, with a default for what is no number.
Value number_from(C c) {
  const bool is_integer = c.name == "int";
  const auto words = split(is_number(c.self) ? text_of(operate("*", c.self, from_json(1))) : text_of(c.self), {}, {});
  const std::string text = words.size() == 1 ? words[0] : "";
  const char *const begin = text.data() + (text.starts_with('+') ? 1 : 0), *const end = text.data() + text.size();
  std::int64_t integer = 0;
  double real = 0.0;
  const auto has_read = [&](auto& number) {
    const auto [stop, error] = std::from_chars(begin, end, number);
    return stop == end && error == std::errc();
  };
  if (is_integer && has_read(integer)) return from_json(integer);
  if (!has_read(real)) return c.given[0] ? c.given[0] : from_json(is_integer ? Json(0) : Json(0.0));
  if (!(std::abs(real) < 9e18)) refuse("a number is not finite, or has more than 64 bits");
  return from_json(is_integer ? Json(static_cast<std::int64_t>(real)) : Json(real));
}

Value range(C c) {
  const std::int64_t first = as_integer(c.self, "range"), start = c.given[0] ? first : 0;
  const std::int64_t stop = c.given[0] ? as_integer(c.given[0], "range") : first;
  const std::int64_t step = c.given[1] ? as_integer(c.given[1], "range") : 1;
  if (step == 0) refuse("the step of range is 0");
  Values items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (items.size() >= max_items) refuse("range has more than {} numbers", max_items);
    items.push_back(from_json(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return list_of(std::move(items), Object::view);
}

/// dict, namespace
Value made_dict(C c) {
  Object dict{.kind = Object::dict};
  if (!c.given.empty()) refuse("{} takes one value", c.name);
  for (const Value& pair : c.self&& c.self->kind != Object::dict ? items_of(c.self) : pairs_of(c.self)) {
    if (length_of(pair) != 2) refuse("{} takes pairs", c.name);
    set_member(dict, item_of(pair, from_json(0)), item_of(pair, from_json(1)));
  }
  for (const auto& [name, value] : c.arguments.named) set_member(dict, from_json(name), value);
  if (c.name == "dict") return make_value(std::move(dict));
  c.run.namespaces.push_back(std::move(dict));
  return make_value({.kind = Object::object, .space = &c.run.namespaces.back()});
}

Value formatted_time(C c) {
  std::array<char, 256> text{};
  const std::string& format = as_text(c.self, "the format of strftime_now");
  if (std::strftime(text.data(), text.size(), format.c_str(), &c.run.now) > 0) return from_json(text.data());
  refuse("the format of strftime_now gives no text, or a long one");
}

Value json_of(C c) {
  Style style{.is_json = true, .is_ascii = is_true(c.given[0]), .sorts_keys = is_true(c.given[3])};
  const Value &indent = c.given[1], &separators = c.given[2];
  if (!is_absent(indent)) {
    const std::int64_t width = is_text(indent) ? 0 : as_integer(indent, "the indent of tojson");
    if (width < -1 || width > 100) refuse("the indent {} of tojson is not in 0..100", width);
    style.indent = is_text(indent) ? text_of(indent) : std::string(static_cast<std::size_t>(std::max(width, 0L)), ' ');
    style.comma = ",";
  }
  if (!is_absent(separators)) {
    if (length_of(separators) != 2) refuse("tojson takes 2 separators");
    style.comma = as_text(item_of(separators, from_json(0)), "a separator of tojson");
    style.colon = as_text(item_of(separators, from_json(1)), "a separator of tojson");
  }
  return from_json(written(c.self, style));
}

Value default_of(C c) {
  if (is_true(c.given[1]) ? is_true(c.self) : c.self != nullptr) return c.self;
  return c.given[0] ? c.given[0] : from_json("");
}

/// first, last
Value end_of(C c) {
  const Value list = is_text(c.self) ? c.self : list_of(items_of(c.self));
  return item_of(list, from_json(c.name == "first" ? 0 : -1));
}

Value got(C c) {
  const Value item = item_of(c.self, c.given[0]);
  return item ? item : c.given[1] ? c.given[1] : from_json({});
}

bool has_type(C c) {
  const Value& self = c.self;
  if (c.name == "defined" || c.name == "undefined") return (self != nullptr) == (c.name == "defined");
  if (c.name == "odd" || c.name == "even") {
    return is_equal(operate("%", self, from_json(2)), from_json(c.name == "odd" ? 1 : 0));
  }
  const auto kind = self ? self->kind : Object::list;  // an undefined value is an empty list
  const bool is_list = kind == Object::list || kind == Object::tuple || kind == Object::dict || is_text(self);
  if (c.name == "sequence") return is_list;
  if (c.name == "iterable") return is_list || kind == Object::view || kind == Object::generator;
  if (c.name == "mapping") return kind == Object::dict;
  if (c.name == "callable") return kind == Object::function;
  if (c.name == "none") return self && is_absent(self);
  if (c.name == "string") return is_text(self);
  if (c.name == "number") return is_number(self);
  if (c.name == "integer") return self && self->json.is_number_integer();
  if (c.name == "float") return self && self->json.is_number_float();
  return self && self->json.is_boolean() && (c.name == "boolean" || is_true(self) == (c.name == "true"));
}

Value tests_order(C c) {
  static const std::map<std::string_view, std::string_view> symbols = {
      {"equalto", "=="}, {"eq", "=="}, {"ne", "!="}, {"lt", "<"}, {"lessthan", "<"}, {"gt", ">"}, {"greaterthan", ">"}};
  const auto found = symbols.find(c.name);
  return operate(found == symbols.end() ? c.name : found->second, c.self, c.given[0]);
}

Value found_at(C c) {
  const std::string text = text_of(c.self);
  const std::size_t found = text.find(as_text(c.given[0], "the argument of find"));
  return from_json(found == std::string::npos ? Json(-1) : Json(count_code_points(text.substr(0, found))));
}

const Builtin builtins[] = {
    {"filter", "trim", "chars", 0, stripped},
    {"str", "strip lstrip rstrip", "chars", 0, stripped},
    {"filter", "upper lower capitalize title", "", 0, cased<false>},
    {"str", "upper lower capitalize title", "", 0, cased<true>},
    {"filter str", "replace", "old new count", 2, replaced},
    {"str", "split", "sep maxsplit", 0, parts_of},
    {"str", "startswith", "prefix", 1,
     [](C c) { return from_json(text_of(c.self).starts_with(as_text(c.given[0], "a prefix"))); }},
    {"str", "endswith", "suffix", 1,
     [](C c) { return from_json(text_of(c.self).ends_with(as_text(c.given[0], "a suffix"))); }},
    {"str", "find", "sub", 1, found_at},
    {"str", "join", "iterable", 1, [](C c) { return joined(c.run, c.given[0], text_of(c.self)); }},
    {"filter", "join", "d", 0, [](C c) { return joined(c.run, c.self, text_of(c.given[0])); }},
    {"filter", "indent", "width first blank", 0, indented},
    {"filter", "string safe", "", 0, [](C c) { return from_json(text_of(c.self)); }},
    {"filter", "length count", "", 0, [](C c) { return from_json(length_of(c.self)); }},
    {"filter", "int float", "default", 0, number_from},
    {"filter", "abs", "", 0,
     [](C c) { return operate("*", c.self, from_json(is_true(operate("<", c.self, from_json(0))) ? -1 : 1)); }},
    {"filter", "default d", "default_value boolean", 0, default_of},
    {"filter", "tojson", "ensure_ascii indent separators sort_keys", 0, json_of},
    {"filter", "list", "", 0, [](C c) { return list_of(items_of(c.self)); }},
    {"filter", "reverse", "", 0, reversed},
    {"filter", "sort", "reverse case_sensitive attribute", 0, sorted},
    {"filter", "dictsort", "", 0, sorted},
    {"filter", "unique", "case_sensitive", 0, unique},
    {"filter", "map", "*", 0, mapped},
    {"filter", "select reject selectattr rejectattr", "*", 0, selected},
    {"filter", "items", "", 0, [](C c) { return list_of(pairs_of(c.self), Object::generator); }},
    {"dict", "items", "", 0, [](C c) { return list_of(pairs_of(c.self), Object::view); }},
    {"dict", "keys", "", 0, [](C c) { return list_of(c.self->keys, Object::view); }},
    {"dict", "values", "", 0, [](C c) { return list_of(c.self->items, Object::view); }},
    {"dict", "get", "key default", 1, got},
    {"filter", "first last", "", 0, end_of},
    {"test",
     "defined undefined none string mapping sequence iterable callable number integer float boolean true false odd "
     "even",
     "", 0, [](C c) { return from_json(has_type(c)); }},
    {"test comparison", "equalto eq == ne != lt lessthan < gt greaterthan > in", "other", 1, tests_order},
    {"function", "range", "stop step", 0, range},
    {"function", "dict namespace", "*", 0, made_dict},
    {"function", "strftime_now", "", 0, formatted_time},
    {"function", "raise_exception", "", 0, [](C c) -> Value { throw RaisedError(text_of(c.self)); }},
};

Value apply(const Builtin& row, std::string_view name, Run& run, const Arguments& arguments) {
  const Values &all = arguments.positional, rest(all.empty() ? all.end() : all.begin() + 1, all.end());
  const Value self = all.empty() ? nullptr : all[0];
  run.spend(is_text(self) ? as_text(self, "").size() : self ? self->items.size() * 8 : 0);
  const bool takes_all = std::string_view(row.parameters) == "*";
  return run.counted(
      row.function({run, name, arguments, self,
                    takes_all ? rest : Arguments{rest, arguments.named}.bind(row.parameters, row.required)}));
}

}  // namespace

Value* Scope::find(const std::string& name) {
  for (Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
    if (const auto found = scope->variables.find(name); found != scope->variables.end()) return &found->second;
  }
  return nullptr;
}

void Run::spend(std::size_t bytes) {
  steps += 1 + bytes / 64;
  if (steps > max_steps) refuse("the template takes too many steps");
}

Value Run::counted(Value value) {
  spend(weight_of(value));
  return value;
}

void Run::write(const Value& value) {
  const std::string part = text_of(value);
  spend(part.size());
  *out += part;
  ensure_weight(out->size());
}

Values Arguments::bind(std::string_view parameters, std::size_t required) const {
  Values values = positional;
  std::size_t count = 0, used = 0;
  for (; !parameters.empty(); ++count) {
    const auto name = parameters.substr(0, parameters.find(' '));
    parameters.remove_prefix(std::min(parameters.size(), name.size() + 1));
    if (count < positional.size()) continue;
    const auto found = std::ranges::find(named, name, [](const auto& each) { return each.first; });
    if (found == named.end() && count < required) refuse("the argument '{}' is missing", name);
    values.push_back(found == named.end() ? nullptr : found->second);
    used += found == named.end() ? 0 : 1;
  }
  if (positional.size() > count) refuse("{} arguments, expected at most {}", positional.size(), count);
  if (used < named.size()) refuse("the argument '{}' is given twice, or not supported", named.back().first);
  return values;
}

Value find_builtin(const std::string& kind, const std::string& name) {
  static const auto functions = [] {
    std::map<std::pair<std::string, std::string>, Value> rows;
    for (const Builtin& row : builtins) {
      for (const std::string& each : split(row.names, nullptr, nullptr)) {
        const auto function = [&row, each](Run& run, const Arguments& arguments) {
          return apply(row, each, run, arguments);
        };
        const Value value = make_value({.kind = Object::function, .call = function});
        for (const std::string& each_kind : split(row.kinds, nullptr, nullptr)) rows[{each_kind, each}] = value;
      }
    }
    return rows;
  }();
  const auto found = functions.find({kind, name});
  return found == functions.end() ? nullptr : found->second;
}

Value get_builtin(const std::string& kind, const std::string& name) {
  const Value found = find_builtin(kind, name);
  if (!found) refuse("the {} '{}' is not supported", kind, name);
  return found;
}

Value call_on(Run& run, const Value& function, const Value& self, Arguments others) {
  others.positional.insert(others.positional.begin(), self);
  return function->call(run, others);
}

Value bound(const Value& function, const Value& self) {
  return make_value({.kind = Object::function, .call = [=](Run& run, const Arguments& arguments) {
                       return call_on(run, function, self, arguments);
                     }});
}

}  // namespace mylos::data::jinja
