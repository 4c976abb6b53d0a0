#include "data/jinja/functions.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <sstream>

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
  std::function<Value(C)> function;
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
  return encode_utf8({begin, end});
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
  return encode_utf8(text);
}

/// str.split(separator, most), where an absent separator is white space.
Values split(const std::string& text, const Value& separator, const Value& most) {
  std::int64_t left = is_absent(most) ? -1 : as_integer(most, "the count");
  Values parts;
  const auto add = [&](const std::string& part) {
    if (parts.size() >= max_items) refuse("split gives more than {} parts", max_items);
    parts.emplace_back(part);
  };
  if (is_absent(separator)) {
    const std::u32string points = decode_utf8(text);
    for (auto at = points.begin(), end = at; true; at = end) {
      at = std::find_if_not(at, points.end(), is_python_space);
      if (at == points.end()) return parts;
      end = left-- == 0 ? points.end() : std::find_if(at, points.end(), is_python_space);
      add(encode_utf8({at, end}));
    }
  }
  const std::string& by = as_text(separator, "the separator");
  if (by.empty()) refuse("an empty separator is not supported");
  std::size_t at = 0;
  for (std::size_t end = 0; left-- != 0 && (end = text.find(by, at)) != std::string::npos; at = end + by.size()) {
    add(text.substr(at, end - at));
  }
  add(text.substr(at));
  return parts;
}

Value joined(Run& run, const Values& parts, const std::string& separator) {
  run.spend(parts.size() * separator.size());
  std::string text;
  for (const Value& part : parts) text += (&part == parts.data() ? "" : separator) + text_of(part);
  return text;
}

Value replaced(C c) {
  const std::string text = text_of(c.self), before = text_of(c.given[0]), after = text_of(c.given[1]);
  if (before.empty()) refuse("an empty separator is not supported");
  std::string out;
  std::int64_t left = is_absent(c.given[2]) ? -1 : as_integer(c.given[2], "the count");
  for (std::size_t at = 0, found = 0; true; at = found + before.size()) {
    found = left-- == 0 ? std::string::npos : text.find(before, at);
    out.append(text, at, found - at);
    if (found == std::string::npos) return out;
    out += after;
    ensure_weight(out.size());
  }
}

Value indented(C c) {
  const std::int64_t width = is_absent(c.given[0]) ? 4 : as_integer(c.given[0], "the width of indent");
  if (width < 0 || width > 100) refuse("the width {} of indent is not in 0..100", width);
  const std::string text = text_of(c.self), indent(static_cast<std::size_t>(width), ' ');
  std::string out = is_true(c.given[1]) ? indent : "";
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    const bool is_blank = i + 1 == text.size() || text[i + 1] == '\n';
    if (text[i] == '\n' && (is_true(c.given[2]) || !is_blank)) out += indent;
    ensure_weight(out.size());
  }
  return out;
}

/// A member by a name like "function.name", or an item by its index.
Value member_of(const Value& object, const Value& path) {
  if (is_number(path)) return item_of(object, path);
  Value value = object;
  for (const Value& name : split(as_text(path, "the name of an attribute"), ".", nullptr)) {
    value = value ? item_of(value, name) : nullptr;
  }
  return value;
}

/// Calls a filter or test with a value and the arguments of `c` that are given from `first` on.
Value call_on(C c, const Value& function, const Value& value, std::size_t first) {
  Values positional = {value};
  for (std::size_t i = first; i < c.given.size(); ++i) positional.push_back(c.given[i]);
  return function->call(c.run, {std::move(positional), c.arguments.named});
}

Value mapped(C c) {
  const bool by_filter = !c.given.empty();
  const Values named = by_filter ? Values() : Arguments{{}, c.arguments.named}.bind({"attribute", "default"}, 1);
  const Value filter = by_filter ? get_builtin("filter", as_text(c.given[0], "the filter of map")) : nullptr;
  Values results;
  for (const Value& item : is_true(c.self) ? items_of(c.self) : Values()) {
    const Value value = by_filter ? call_on(c, filter, item, 1) : member_of(item, named[0]);
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
    const bool holds = is_true(test ? call_on(c, test, value, at + 1) : value);
    if (holds == c.name.starts_with("select")) kept.push_back(item);
  }
  return list_of(std::move(kept), Object::generator);
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
  return encode_utf8(python_lower(decode_utf8(text_of(value))));
}

/// sort, dictsort
Value sorted(C c) {
  const bool of_dict = c.name == "dictsort";
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : of_dict ? pairs_of(c.self) : items_of(c.self)) {
    keyed.emplace_back(sort_key(item, of_dict ? Value(0) : c.given[2], of_dict ? nullptr : c.given[1]), item);
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
  const Values words = split(text_of(is_number(c.self) ? operate("*", c.self, 1) : c.self), {}, {});
  const std::string text = words.size() == 1 ? text_of(words[0]) : "";
  const char *const begin = text.data() + (text.starts_with('+') ? 1 : 0), *const end = text.data() + text.size();
  std::int64_t integer = 0;
  double real = 0.0;
  const auto has_read = [&](auto& number) {
    const auto [stop, error] = std::from_chars(begin, end, number);
    return stop == end && error == std::errc();
  };
  if (is_integer && has_read(integer)) return integer;
  if (!has_read(real)) return c.given[0] ? c.given[0] : Value(is_integer ? Json(0) : Json(0.0));
  if (!(std::abs(real) < 9e18)) refuse("a number is not finite, or has more than 64 bits");
  return is_integer ? Json(static_cast<std::int64_t>(real)) : Json(real);
}

Value range(C c) {
  const std::int64_t first = as_integer(c.self, "range"), start = c.given[0] ? first : 0;
  const std::int64_t stop = c.given[0] ? as_integer(c.given[0], "range") : first;
  const std::int64_t step = c.given[1] ? as_integer(c.given[1], "range") : 1;
  if (step == 0) refuse("the step of range is 0");
  Values items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (items.size() >= max_items) refuse("range has more than {} numbers", max_items);
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return list_of(std::move(items), Object::view);
}

/// dict, namespace
Value made_dict(C c) {
  Object dict{.kind = Object::dict};
  if (!c.given.empty()) refuse("{} takes one value", c.name);
  const bool is_dict = !c.self || is_of(c.self, {Object::dict});
  for (const Value& pair : is_dict ? pairs_of(c.self) : items_of(c.self)) {
    if (length_of(pair) != 2) refuse("{} takes pairs", c.name);
    set_member(dict, item_of(pair, 0), item_of(pair, 1));
  }
  for (const auto& [name, value] : c.arguments.named) set_member(dict, name, value);
  if (c.name == "dict") return dict;
  c.run.namespaces.push_back(std::move(dict));
  return Object{.kind = Object::object, .space = &c.run.namespaces.back()};
}

Value formatted_time(C c) {
  std::array<char, 256> text{};
  const std::string& format = as_text(c.self, "the format of strftime_now");
  if (std::strftime(text.data(), text.size(), format.c_str(), &c.run.now) > 0) return text.data();
  refuse("the format of strftime_now gives no text, or a long one");
}

Value json_of(C c) {
  Style style{.is_json = true, .is_ascii = is_true(c.given[0]), .sorts_keys = is_true(c.given[3])};
  const Value &indent = c.given[1], &separators = c.given[2];
  if (!is_absent(indent)) {
    const auto length = static_cast<std::int64_t>(is_text(indent) ? length_of(indent) : 0);
    const std::int64_t width = is_text(indent) ? length : as_integer(indent, "the indent of tojson");
    if (width < -1 || width > 100) refuse("the indent {} of tojson is not in 0..100", width);
    style.indent = is_text(indent) ? text_of(indent) : std::string(static_cast<std::size_t>(std::max(width, 0L)), ' ');
    style.comma = ",";
  }
  if (!is_absent(separators)) {
    if (length_of(separators) != 2) refuse("tojson takes 2 separators");
    style.comma = as_text(item_of(separators, 0), "a separator of tojson");
    style.colon = as_text(item_of(separators, 1), "a separator of tojson");
  }
  return written(c.self, style);
}

bool is_remainder(C c, int remainder) { return is_equal(operate("%", c.self, 2), remainder); }

const Builtin builtins[] = {
    {"filter", "trim", "chars", 0, stripped},
    {"str", "strip lstrip rstrip", "chars", 0, stripped},
    {"filter", "upper lower capitalize title", "", 0, cased<false>},
    {"str", "upper lower capitalize title", "", 0, cased<true>},
    {"filter str", "replace", "old new count", 2, replaced},
    {"str", "split", "sep maxsplit", 0, [](C c) { return list_of(split(text_of(c.self), c.given[0], c.given[1])); }},
    {"str", "startswith", "prefix", 1,
     [](C c) { return text_of(c.self).starts_with(as_text(c.given[0], "a prefix")); }},
    {"str", "endswith", "suffix", 1, [](C c) { return text_of(c.self).ends_with(as_text(c.given[0], "a suffix")); }},
    {"str", "find", "sub", 1,
     [](C c) {
       const std::string text = text_of(c.self);
       const std::size_t found = text.find(as_text(c.given[0], "the argument of find"));
       return found == std::string::npos ? Json(-1) : Json(count_code_points(text.substr(0, found)));
     }},
    {"str", "join", "iterable", 1, [](C c) { return joined(c.run, items_of(c.given[0]), text_of(c.self)); }},
    {"filter", "join", "d", 0, [](C c) { return joined(c.run, items_of(c.self), text_of(c.given[0])); }},
    {"filter", "indent", "width first blank", 0, indented},
    {"filter", "string safe", "", 0, [](C c) { return text_of(c.self); }},
    {"filter", "length count", "", 0, [](C c) { return length_of(c.self); }},
    {"filter", "int float", "default", 0, number_from},
    {"filter", "abs", "", 0, [](C c) { return operate("*", c.self, is_true(operate("<", c.self, 0)) ? -1 : 1); }},
    {"filter", "default d", "default_value boolean", 0,
     [](C c) {
       if (is_true(c.given[1]) ? is_true(c.self) : c.self != nullptr) return c.self;
       return c.given[0] ? c.given[0] : Value("");
     }},
    {"filter", "tojson", "ensure_ascii indent separators sort_keys", 0, json_of},
    {"filter", "list", "", 0, [](C c) { return list_of(items_of(c.self)); }},
    {"filter", "reverse", "", 0,
     [](C c) {
       const Value list = is_text(c.self) ? c.self : list_of(items_of(c.self));
       const Value reversed = slice_of(list, nullptr, nullptr, -1);
       return is_text(c.self) ? reversed : list_of(reversed->items, Object::generator);
     }},
    {"filter", "sort", "reverse case_sensitive attribute", 0, sorted},
    {"filter", "dictsort", "", 0, sorted},
    {"filter", "unique", "case_sensitive", 0, unique},
    {"filter", "map", "*", 0, mapped},
    {"filter", "select reject selectattr rejectattr", "*", 0, selected},
    {"filter", "items", "", 0, [](C c) { return list_of(pairs_of(c.self), Object::generator); }},
    {"dict", "items", "", 0, [](C c) { return list_of(pairs_of(c.self), Object::view); }},
    {"dict", "keys", "", 0, [](C c) { return list_of(c.self->keys, Object::view); }},
    {"dict", "values", "", 0, [](C c) { return list_of(c.self->items, Object::view); }},
    {"dict", "get", "key default", 1,
     [](C c) {
       const Value item = item_of(c.self, c.given[0]);
       return item ? item : c.given[1] ? c.given[1] : Value(Json());
     }},
    {"filter", "first last", "", 0,
     [](C c) {
       const Value list = is_text(c.self) ? c.self : list_of(items_of(c.self));
       return item_of(list, c.name == "first" ? 0 : -1);
     }},
    {"test", "defined", "", 0, [](C c) { return c.self != nullptr; }},
    {"test", "undefined", "", 0, [](C c) { return c.self == nullptr; }},
    {"test", "none", "", 0, [](C c) { return c.self && is_absent(c.self); }},
    {"test", "string", "", 0, [](C c) { return is_text(c.self); }},
    {"test", "mapping", "", 0, [](C c) { return is_of(c.self, {Object::dict}); }},
    {"test", "callable", "", 0, [](C c) { return is_of(c.self, {Object::function}); }},
    {"test", "sequence", "", 0,
     [](C c) {
       return !c.self || is_text(c.self) || is_of(c.self, {Object::list, Object::tuple, Object::dict});
     }},
    {"test", "iterable", "", 0,
     [](C c) {
       return !c.self || is_text(c.self) ||
              (c.self->kind != Object::scalar && !is_of(c.self, {Object::object, Object::function}));
     }},
    {"test", "number", "", 0, [](C c) { return is_number(c.self); }},
    {"test", "integer", "", 0, [](C c) { return c.self && c.self->json.is_number_integer(); }},
    {"test", "float", "", 0, [](C c) { return c.self && c.self->json.is_number_float(); }},
    {"test", "boolean", "", 0, [](C c) { return c.self && c.self->json.is_boolean(); }},
    {"test", "true", "", 0, [](C c) { return c.self && c.self->json == true; }},
    {"test", "false", "", 0, [](C c) { return c.self && c.self->json == false; }},
    {"test", "odd", "", 0, [](C c) { return is_remainder(c, 1); }},
    {"test", "even", "", 0, [](C c) { return is_remainder(c, 0); }},
    {"test comparison", "== equalto eq", "other", 1, [](C c) { return operate("==", c.self, c.given[0]); }},
    {"test comparison", "!= ne", "other", 1, [](C c) { return operate("!=", c.self, c.given[0]); }},
    {"test comparison", "< lessthan lt", "other", 1, [](C c) { return operate("<", c.self, c.given[0]); }},
    {"test comparison", "> greaterthan gt", "other", 1, [](C c) { return operate(">", c.self, c.given[0]); }},
    {"test comparison", "in", "other", 1, [](C c) { return operate("in", c.self, c.given[0]); }},
    {"function", "range", "stop step", 0, range},
    {"function", "dict namespace", "*", 0, made_dict},
    {"function", "strftime_now", "", 0, formatted_time},
    {"function", "raise_exception", "", 0, [](C c) -> Value { refuse("the template raises: {}", text_of(c.self)); }},
};

/// Returns the words between spaces.
std::vector<std::string> words_of(const char* text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

Value builtin_value(const Builtin& row, const std::string& name) {
  const auto call = [=, &row, parameters = words_of(row.parameters)](Run& run, const Arguments& all) {
    Arguments others = all;
    if (!all.positional.empty()) others.positional.erase(others.positional.begin());
    const Value self = all.positional.empty() ? nullptr : all.positional[0];
    run.spend(is_text(self) ? as_text(self, "").size() : self ? self->items.size() * 8 : 0);
    const bool takes_all = std::string_view(row.parameters) == "*";
    const Values given = takes_all ? others.positional : others.bind(parameters, row.required);
    return run.counted(row.function({run, name, all, self, given}));
  };
  return Object{.kind = Object::function, .call = call};
}

}  // namespace

Value* Scope::find(const std::string& name) {
  const auto found = variables.find(name);
  return found != variables.end() ? &found->second : parent ? parent->find(name) : nullptr;
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

Values Arguments::bind(const std::vector<std::string>& parameters, std::size_t required) const {
  if (positional.size() > parameters.size())
    refuse("{} arguments, expected at most {}", positional.size(), parameters.size());
  Values values = positional;
  std::size_t used = 0;
  for (std::size_t i = values.size(); i < parameters.size(); ++i) {
    const auto found = std::ranges::find(named, parameters[i], [](const auto& each) { return each.first; });
    if (found == named.end() && i < required) refuse("the argument '{}' is missing", parameters[i]);
    used += found == named.end() ? 0 : 1;
    values.push_back(found == named.end() ? nullptr : found->second);
  }
  if (used < named.size()) refuse("the argument '{}' is given twice, or not supported", named.back().first);
  return values;
}

Value find_builtin(const std::string& kind, const std::string& name) {
  static const auto values = [] {
    std::map<std::string, Value> by_name;
    for (const Builtin& row : builtins) {
      for (const auto& each : words_of(row.names)) {
        for (const auto& of : words_of(row.kinds)) by_name[fmt::format("{} {}", of, each)] = builtin_value(row, each);
      }
    }
    return by_name;
  }();
  const auto found = values.find(kind + ' ' + name);
  return found == values.end() ? nullptr : found->second;
}

Value get_builtin(const std::string& kind, const std::string& name) {
  const Value found = find_builtin(kind, name);
  if (!found) refuse("the {} '{}' is not supported", kind, name);
  return found;
}

Value attribute_of(const Value& value, const std::string& name) {
  const bool is_dict = value && value->kind == Object::dict;
  const Value method = is_text(value) || is_dict ? find_builtin(is_dict ? "dict" : "str", name) : nullptr;
  if (!method) return item_of(value, name);
  const auto call = [=](Run& run, Arguments arguments) {
    arguments.positional.insert(arguments.positional.begin(), value);
    return method->call(run, arguments);
  };
  return Object{.kind = Object::function, .call = call};
}

}  // namespace mylos::data::jinja
