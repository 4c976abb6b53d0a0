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

using C = const Call&;

constexpr std::size_t max_steps = std::size_t{2} << 20, max_items = 100000;

bool is_absent(const Value& value) { return !value || value->is_null(); }

/// trim, strip, lstrip, rstrip
Json stripped(C c) {
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
Json cased(C c) {
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

std::string joined(Run& run, const std::vector<std::string>& parts, const std::string& separator) {
  run.spend(parts.size() * separator.size());
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string joined(Run& run, const Value& list, const std::string& separator) {
  std::vector<std::string> parts;
  for (const Value& item : items_of(list)) parts.push_back(text_of(item));
  return joined(run, parts, separator);
}

Json replaced(C c) {
  const auto parts = split(text_of(c.self), from_json(text_of(c.given[0])), c.given[2]);
  return joined(c.run, parts, text_of(c.given[1]));
}

Json indented(C c) {
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
  if (path && path->is_number()) return item_of(object, path);
  Value value = object;
  for (const std::string& name : split(as_text(path, "the name of an attribute"), from_json("."), nullptr)) {
    value = value ? item_of(value, from_json(name)) : nullptr;
  }
  return value;
}

Json mapped(C c) {
  const bool by_filter = !c.arguments.positional.empty();
  const Values given = by_filter ? Values() : c.arguments.bind("attribute default", 1);
  const std::string filter = by_filter ? as_text(c.arguments.positional[0], "the filter of map") : "string";
  const Builtin& builtin = get_builtin("filter", filter);
  const Arguments rest = c.arguments.without_first(1);
  Values results;
  for (const Value& item : items_of(is_true(c.self) ? c.self : nullptr)) {
    const Value value = by_filter ? apply(builtin, filter, c.run, item, rest) : member_of(item, given[0]);
    results.push_back(value || by_filter ? value : given[1]);
  }
  return list_of(results);
}

/// select, reject, selectattr, rejectattr
Json selected(C c) {
  const bool by_member = c.name.ends_with("attr");
  if (by_member && c.arguments.positional.empty()) refuse("the name of an attribute is missing");
  const Arguments tested = c.arguments.without_first(by_member ? 1 : 0), rest = tested.without_first(1);
  const std::string test = tested.positional.empty() ? "" : as_text(tested.positional[0], "the name of a test");
  Values kept;
  for (const Value& item : items_of(is_true(c.self) ? c.self : nullptr)) {
    const Value value = by_member ? member_of(item, c.arguments.positional[0]) : item;
    const bool holds = is_true(test.empty() ? value : apply(get_builtin("test", test), test, c.run, value, rest));
    if (holds == c.name.starts_with("select")) kept.push_back(item);
  }
  return list_of(kept);
}

Json pairs_of(C c) {
  if (c.self && !c.self->is_object()) refuse("only dicts have items");
  Json pairs = Json::array();
  for (const Value& key : items_of(c.self)) pairs.push_back(Json::array({*key, *item_of(c.self, key)}));
  return pairs;
}

/// Returns the key by which sort and unique compare an item. Case does not matter in texts, unless `by_case`.
Value sort_key(const Value& item, const Value& attribute, const Value& by_case) {
  const Value value = is_absent(attribute) ? item : member_of(item, attribute);
  if (!value || !value->is_string() || is_true(by_case)) return value;
  return from_json(encode_utf8(python_lower(decode_utf8(text_of(value)))));
}

/// sort, dictsort
Json sorted(C c) {
  const bool of_dict = c.name == "dictsort";
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items_of(of_dict ? from_json(pairs_of(c)) : c.self)) {
    keyed.emplace_back(sort_key(item, of_dict ? from_json(0) : c.given[2], of_dict ? nullptr : c.given[1]), item);
  }
  std::ranges::stable_sort(keyed, [is_reverse = !of_dict && is_true(c.given[0])](const auto& a, const auto& b) {
    return is_true(from_json(is_reverse ? operate("<", b.first, a.first) : operate("<", a.first, b.first)));
  });
  Json items = Json::array();
  for (const auto& [key, item] : keyed) items.push_back(*item);
  return items;
}

Json unique(C c) {
  Values kept, keys;
  for (const Value& item : items_of(c.self)) {
    const Value key = sort_key(item, nullptr, c.given[0]);
    if (std::ranges::any_of(keys, [&](const Value& each) { return is_equal(each, key); })) continue;
    if (keys.size() >= 1000) refuse("unique of more than 1000 values is not supported");
    keys.push_back(key);
    kept.push_back(item);
  }
  return list_of(kept);
}

/// int and float, with a default for what is no number.
Json number_from(C c) {
  const bool is_integer = c.name == "int";
  const std::string text = c.self && c.self->is_boolean()
                               ? (is_true(c.self) ? "1" : "0")
                               : stripped({c.run, "trim", c.self, {}, {nullptr}}).get<std::string>();
  const char *const begin = text.data() + (text.starts_with('+') ? 1 : 0), *const end = text.data() + text.size();
  std::int64_t integer = 0;
  double real = 0.0;
  const auto has_read = [&](auto& number) {
    const auto [stop, error] = std::from_chars(begin, end, number);
    return stop == end && error == std::errc();
  };
  if (is_integer && has_read(integer)) return integer;
  if (!has_read(real)) return c.given[0] ? *c.given[0] : is_integer ? Json(0) : Json(0.0);
  if (!(std::abs(real) < 9e18)) refuse("a number is not finite, or has more than 64 bits");
  return is_integer ? Json(static_cast<std::int64_t>(real)) : Json(real);
}

Json range(C c) {
  const std::int64_t first = as_integer(c.given[0], "range"), start = c.given[1] ? first : 0;
  const std::int64_t stop = c.given[1] ? as_integer(c.given[1], "range") : first;
  const std::int64_t step = c.given[2] ? as_integer(c.given[2], "range") : 1;
  if (step == 0) refuse("the step of range is 0");
  Json items = Json::array();
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (items.size() >= max_items) refuse("range has more than {} numbers", max_items);
    items.push_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return items;
}

Json make_namespace(C c) {
  if (!c.arguments.positional.empty()) refuse("namespace of a value is not supported");
  Json members = Json::object();
  for (const auto& [name, value] : c.arguments.named) members[name] = defined(value);
  return members;
}

Json formatted_time(C c) {
  std::array<char, 256> text{};
  const std::string& format = as_text(c.given[0], "the format of strftime_now");
  if (std::strftime(text.data(), text.size(), format.c_str(), &c.run.now) > 0) return text.data();
  refuse("the format of strftime_now gives no text, or a long one");
}

Json json_of(C c) {
  if (is_true(c.given[0])) refuse("ensure_ascii of tojson is not supported");
  const std::int64_t indent = is_absent(c.given[1]) ? -1 : as_integer(c.given[1], "the indent of tojson");
  if (indent < -1 || indent > 100) refuse("the indent {} of tojson is not in 0..100", indent);
  return written(defined(c.self), true, static_cast<int>(indent));
}

/// Returns what `Run::make` turns into the value again.
Json or_undefined(const Value& value) { return value ? *value : Json(Json::value_t::discarded); }

Json default_of(C c) {
  if (is_true(c.given[1]) ? is_true(c.self) : c.self != nullptr) return *c.self;
  return c.given[0] ? *c.given[0] : Json("");
}

/// first, last
Json end_of(C c) {
  return or_undefined(item_of(from_json(list_of(items_of(c.self))), from_json(c.name == "first" ? 0 : -1)));
}

Json got(C c) {
  const Value item = item_of(c.self, c.given[0]);
  return item || c.given[1] ? or_undefined(item ? item : c.given[1]) : Json();
}

Json tests_type(C c) {
  const Value& self = c.self;
  if (c.name == "defined" || c.name == "undefined") return (self != nullptr) == (c.name == "defined");
  const bool is_listed = !self || self->is_structured() || self->is_string();
  if (c.name == "sequence" || c.name == "iterable") return is_listed;
  if (c.name == "odd" || c.name == "even") {
    return is_equal(from_json(operate("%", self, from_json(2))), from_json(c.name == "odd" ? 1 : 0));
  }
  if (!self) return false;
  if (c.name == "none") return self->is_null();
  if (c.name == "string") return self->is_string();
  if (c.name == "mapping") return self->is_object();
  if (c.name == "number") return is_number(self);
  if (c.name == "integer") return self->is_number_integer();
  if (c.name == "float") return self->is_number_float();
  return self->is_boolean() && (c.name == "boolean" || is_true(self) == (c.name == "true"));
}

Json tests_order(C c) {
  static const std::map<std::string_view, std::string_view> symbols = {
      {"equalto", "=="}, {"eq", "=="}, {"ne", "!="}, {"lt", "<"}, {"lessthan", "<"}, {"gt", ">"}, {"greaterthan", ">"}};
  const auto found = symbols.find(c.name);
  return operate(found == symbols.end() ? c.name : found->second, c.self, c.given[0]);
}

Json found_at(C c) {
  const std::string text = text_of(c.self);
  const std::size_t found = text.find(as_text(c.given[0], "the argument of find"));
  return found == std::string::npos ? Json(-1) : Json(count_code_points(text.substr(0, found)));
}

const Builtin builtins[] = {
    {"filter", "trim", "chars", 0, stripped},
    {"str", "strip lstrip rstrip", "chars", 0, stripped},
    {"filter", "upper lower capitalize title", "", 0, cased<false>},
    {"str", "upper lower capitalize title", "", 0, cased<true>},
    {"filter str", "replace", "old new count", 2, replaced},
    {"str", "split", "sep maxsplit", 0, [](C c) { return Json(split(text_of(c.self), c.given[0], c.given[1])); }},
    {"str", "startswith", "prefix", 1,
     [](C c) { return Json(text_of(c.self).starts_with(as_text(c.given[0], "a prefix"))); }},
    {"str", "endswith", "suffix", 1,
     [](C c) { return Json(text_of(c.self).ends_with(as_text(c.given[0], "a suffix"))); }},
    {"str", "find", "sub", 1, found_at},
    {"str", "join", "iterable", 1, [](C c) { return Json(joined(c.run, c.given[0], text_of(c.self))); }},
    {"filter", "join", "d", 0, [](C c) { return Json(joined(c.run, c.self, text_of(c.given[0]))); }},
    {"filter", "indent", "width first blank", 0, indented},
    {"filter", "string safe", "", 0, [](C c) { return Json(text_of(c.self)); }},
    {"filter", "length count", "", 0, [](C c) { return Json(length_of(c.self)); }},
    {"filter", "int float", "default", 0, number_from},
    {"filter", "abs", "", 0,
     [](C c) {
       return operate("*", c.self, from_json(is_true(from_json(operate("<", c.self, from_json(0)))) ? -1 : 1));
     }},
    {"filter", "default d", "default_value boolean", 0, default_of},
    {"filter", "tojson", "ensure_ascii indent", 0, json_of},
    {"filter", "list", "", 0, [](C c) { return list_of(items_of(c.self)); }},
    {"filter", "reverse", "", 0, [](C c) { return slice_of(c.self, nullptr, nullptr, from_json(-1)); }},
    {"filter", "sort", "reverse case_sensitive attribute", 0, sorted},
    {"filter", "dictsort", "", 0, sorted},
    {"filter", "unique", "case_sensitive", 0, unique},
    {"filter", "map", "*", 0, mapped},
    {"filter", "select reject selectattr rejectattr", "*", 0, selected},
    {"filter dict", "items", "", 0, pairs_of},
    {"dict", "keys", "", 0, [](C c) { return list_of(items_of(c.self)); }},
    {"dict", "values", "", 0, [](C c) { return Json(std::vector<Json>(c.self->begin(), c.self->end())); }},
    {"dict", "get", "key default", 1, got},
    {"filter", "first last", "", 0, end_of},
    {"test", "defined undefined none string mapping sequence iterable number integer float boolean true false odd even",
     "", 0, tests_type},
    {"test", "equalto eq == ne != lt lessthan < gt greaterthan > in", "other", 1, tests_order},
    {"function", "range", "start stop step", 1, range},
    {"function", "namespace", "*", 0, make_namespace},
    {"function", "strftime_now", "format", 1, formatted_time},
    {"function", "raise_exception", "message", 1, [](C c) -> Json { throw RaisedError(text_of(c.given[0])); }},
};

/// Returns whether a list of words separated by spaces has one.
bool has_word(std::string_view words, std::string_view word) {
  return word.find(' ') == std::string_view::npos &&
         fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

}  // namespace

void Run::spend(std::size_t bytes) {
  steps += 1 + bytes / 64;
  if (steps > max_steps) refuse("the template takes too many steps");
}

Value Run::make(Json json) {
  if (json.is_discarded()) return nullptr;
  spend(weight_of(json));
  return from_json(std::move(json));
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

Arguments Arguments::without_first(std::size_t count) const {
  const auto begin = positional.begin() + static_cast<std::ptrdiff_t>(std::min(count, positional.size()));
  return {Values(begin, positional.end()), named};
}

const Builtin* find_builtin(std::string_view kind, std::string_view name) {
  const auto is_it = [&](const Builtin& each) { return has_word(each.kind, kind) && has_word(each.names, name); };
  const auto* found = std::ranges::find_if(builtins, is_it);
  return found == std::end(builtins) ? nullptr : found;
}

const Builtin& get_builtin(std::string_view kind, std::string_view name) {
  const Builtin* found = find_builtin(kind, name);
  if (found == nullptr) refuse("the {} '{}' is not supported", kind, name);
  return *found;
}

Value apply(const Builtin& builtin, std::string_view name, Run& run, const Value& self, const Arguments& arguments) {
  run.spend(self && self->is_string() ? as_text(self, "").size() : self ? self->size() * 8 : 0);
  const bool takes_all = builtin.parameters == "*";
  return run.make(builtin.function(
      {run, name, self, arguments, takes_all ? Values() : arguments.bind(builtin.parameters, builtin.required)}));
}

}  // namespace mylos::data::jinja
