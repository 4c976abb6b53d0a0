#include "data/jinja/value.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/text/python_text.hpp"
#include "core/base/text/unicode.hpp"

namespace mylos::data::jinja {
namespace {

constexpr std::size_t max_weight = std::size_t{16} << 20, item_weight = 128, max_depth = 100;

const char* type_name(const Value& value) {
  constexpr std::array names = {"", "list", "tuple", "dict", "object", "function", "view", "generator"};
  return !value ? "undefined" : value->kind == Object::scalar ? value->json.type_name() : names[value->kind];
}

std::string quoted(const std::string& text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char32_t c : decode_utf8(text)) {
    if (c == static_cast<char32_t>(quote) || c == '\\') out += '\\';
    if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (!is_python_printable(c)) {
      const char letter = c < 0x100 ? 'x' : c < 0x10000 ? 'u' : 'U';
      out += fmt::format("\\{}{:0{}x}", letter, static_cast<unsigned>(c), letter == 'x' ? 2 : letter == 'u' ? 4 : 8);
    } else {
      append_utf8(out, c);
    }
  }
  return out + quote;
}

std::string scalar_text(const Json& json, const Style& style) {
  if (json.is_number_float()) return python_repr(json.get<double>());
  if (style.is_json || json.is_number()) return json.dump(-1, ' ', style.is_ascii);
  if (json.is_string()) return quoted(json.get_ref<const std::string&>());
  return json.is_null() ? "None" : json.get<bool>() ? "True" : "False";
}

/// Returns a number, which of a bool is 0 or 1.
Json number_of(const Value& value) {
  return value->json.is_boolean() ? Json(int{value->json.get<bool>()}) : value->json;
}

bool is_less(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return number_of(a) < number_of(b);
  if (is_text(a) && is_text(b)) return a->json < b->json;
  refuse("{} and {} have no order", type_name(a), type_name(b));
}

void write(std::string& out, const Value& value, const Style& style, std::size_t level) {
  if (!style.is_json && !value) out += "Undefined";
  if (!style.is_json && !value) return;
  if (!is_of(value, {Object::scalar, Object::list, Object::tuple, Object::dict}))
    refuse("{} cannot be written{}", type_name(value), style.is_json ? " as JSON" : "");
  if (value->kind == Object::scalar) out += scalar_text(value->json, style);
  if (value->kind == Object::scalar) return;
  const bool is_dict = value->kind == Object::dict, is_round = value->kind == Object::tuple && !style.is_json;
  const auto new_line = [&](std::size_t depth) {
    if (!style.indent || value->items.empty()) return;
    out += '\n';
    for (std::size_t i = 0; i < depth; ++i) out += *style.indent;
  };
  std::vector<std::size_t> order(value->items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (is_dict && style.sorts_keys)
    std::ranges::stable_sort(order, is_less, [&](std::size_t i) -> const Value& { return value->keys[i]; });
  out += is_dict ? '{' : is_round ? '(' : '[';
  for (const std::size_t& i : order) {
    if (&i != order.data()) out += style.comma;
    new_line(level + 1);
    if (is_dict) {
      const Value& key = value->keys[i];
      const bool is_quoted = style.is_json && !is_text(key);
      if (style.is_json && key->kind != Object::scalar)
        refuse("a key is {} and cannot be written as JSON", type_name(key));
      out += is_quoted ? fmt::format("\"{}\"", written(key, style)) : written(key, style);
      out += style.colon;
    }
    write(out, value->items[i], style, level + 1);
    ensure_weight(out.size());
  }
  if (is_round && order.size() == 1) out += ',';
  new_line(level);
  out += is_dict ? '}' : is_round ? ')' : ']';
}

/// Computes in 64 bits: integers with the mantissa of a long double, which holds them all.
Json number_result(std::string_view symbol, const Value& a, const Value& b) {
  const auto compute = [&](auto x, auto y) {
    if (symbol == "+") return x + y;
    if (symbol == "-") return x - y;
    if (symbol == "*") return x * y;
    if (y == 0) refuse("a division by 0");
    if (symbol == "/") return x / y;
    auto remainder = std::fmod(x, y);
    if (remainder != 0 && (remainder < 0) != (y < 0)) remainder += y;  // Python rounds down
    return symbol == "%" ? remainder : std::round((x - remainder) / y);
  };
  if (a->json.is_number_float() || b->json.is_number_float() || symbol == "/") {
    const double result = compute(number_of(a).get<double>(), number_of(b).get<double>());
    if (!std::isfinite(result)) refuse("a number is not finite");
    return result;
  }
  const long double x = as_integer(a, "a number"), y = as_integer(b, "a number"), result = compute(x, y);
  if (std::abs(result) >= 0x1p63L) refuse("an integer has more than 64 bits");
  return static_cast<std::int64_t>(result);
}

/// Returns the place of a key among the keys, or their number.
std::size_t find_key(const Object& object, const Value& key) {
  const auto found = std::ranges::find_if(object.keys, [&](const Value& each) { return is_equal(each, key); });
  return static_cast<std::size_t>(found - object.keys.begin());
}

/// Repeats a string, list or tuple.
Value repeated(const Value& value, std::int64_t times) {
  const std::size_t weight = is_text(value) ? as_text(value, "").size() : value->weight - item_weight;
  const auto too_many = static_cast<std::int64_t>(max_weight / std::max<std::size_t>(weight, 1) + 1);
  std::string text;
  Values items;
  for (std::int64_t i = 0; is_true(value) && i < std::min(times, too_many); ++i) {
    text += is_text(value) ? as_text(value, "") : "";
    items.insert(items.end(), value->items.begin(), value->items.end());
  }
  return is_text(value) ? Value(text) : list_of(std::move(items), value->kind);
}

}  // namespace

void ensure_weight(std::size_t weight) {
  if (weight > max_weight) refuse("a value is larger than {} bytes", max_weight);
}

std::size_t weight_of(const Value& value) { return value ? value->weight : item_weight; }

Value::Value(const std::string& text) : Value(Json(text)) {}

Value::Value(const char* text) : Value(Json(text)) {}

Value::Value(Object&& object) {
  object.weight = item_weight + (object.json.is_string() ? object.json.get_ref<const std::string&>().size() : 0);
  for (const Values* part : {&object.keys, &object.items}) {
    for (const Value& each : *part) {
      object.weight += weight_of(each);
      object.depth = std::max(object.depth, each ? each->depth + 1 : 0);
    }
  }
  ensure_weight(object.weight);
  if (object.depth > max_depth) refuse("a value nests deeper than {} levels", max_depth);
  reset(new Object(std::move(object)));
}

Value::Value(const Json& json) {
  Object object{.kind = json.is_object() ? Object::dict : json.is_array() ? Object::list : Object::scalar};
  if (object.kind == Object::scalar) object.json = json;
  for (const auto& [key, item] : json.items()) {
    if (json.is_object()) object.keys.emplace_back(key);
    if (json.is_structured()) object.items.emplace_back(item);
  }
  *this = Value(std::move(object));
}

Value list_of(Values items, Object::Kind kind) { return Object{.kind = kind, .items = std::move(items)}; }

void set_member(Object& object, const Value& key, const Value& value) {
  if (!is_of(key, {Object::scalar, Object::tuple})) refuse("a key of a dict is {}", type_name(key));
  const std::size_t at = find_key(object, key);
  if (at == object.keys.size()) object.keys.push_back(key);
  object.items.resize(object.keys.size());
  object.items[at] = value;
}

bool is_of(const Value& value, std::initializer_list<Object::Kind> kinds) {
  return value && std::ranges::find(kinds, value->kind) != kinds.end();
}

bool is_text(const Value& value) { return value && value->json.is_string(); }

bool is_number(const Value& value) { return value && (value->json.is_number() || value->json.is_boolean()); }

bool is_absent(const Value& value) { return !value || (value->kind == Object::scalar && value->json.is_null()); }

bool is_true(const Value& value) {
  if (is_number(value)) return value->json.is_boolean() ? value->json.get<bool>() : value->json != 0;
  if (is_absent(value) || is_text(value)) return is_text(value) && !as_text(value, "").empty();
  return !value->items.empty() || is_of(value, {Object::object, Object::function, Object::generator});
}

bool is_equal(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return !is_less(a, b) && !is_less(b, a);
  if (a == b || !a || !b || a->kind != b->kind) return a == b;
  if (a->kind == Object::scalar) return a->json == b->json;
  if (is_of(a, {Object::list, Object::tuple})) return std::ranges::equal(a->items, b->items, is_equal);
  if (a->kind != Object::dict || a->keys.size() != b->keys.size()) return false;
  for (std::size_t i = 0; i < a->keys.size(); ++i) {
    const std::size_t at = find_key(*b, a->keys[i]);
    if (at == b->keys.size() || !is_equal(a->items[i], b->items[at])) return false;
  }
  return true;
}

std::string written(const Value& value, const Style& style) {
  std::string out;
  write(out, value, style, 0);
  return out;
}

std::string text_of(const Value& value) {
  if (!value) return "";
  return is_text(value) ? as_text(value, "") : written(value);
}

Values items_of(const Value& value) {
  if (!value) return {};
  if (is_of(value, {Object::list, Object::tuple, Object::view})) return value->items;
  if (value->kind == Object::dict) return value->keys;
  if (value->kind == Object::generator) return std::exchange(value->items, {});
  if (!is_text(value)) refuse("{} cannot be iterated over", type_name(value));
  if (as_text(value, "").size() > max_weight / item_weight) refuse("a text is too long for a list");
  Values items;
  for (const char32_t c : decode_utf8(as_text(value, ""))) items.emplace_back(encode_utf8({&c, 1}));
  return items;
}

std::size_t length_of(const Value& value) {
  if (is_text(value)) return count_code_points(as_text(value, ""));
  if (value && !is_of(value, {Object::list, Object::tuple, Object::dict, Object::view}))
    refuse("{} has no length", type_name(value));
  return value ? value->items.size() : 0;
}

Value item_of(const Value& value, const Value& key) {
  if (!value) refuse("an undefined value has no member {}", key ? written(key) : "");
  if (is_of(value, {Object::dict, Object::object})) {
    const Object& holder = value->space != nullptr ? *value->space : *value;
    const std::size_t at = find_key(holder, key);
    return at < holder.keys.size() ? holder.items[at] : nullptr;
  }
  const bool is_list = is_of(value, {Object::list, Object::tuple, Object::view});
  if (!key || !key->json.is_number_integer() || !(is_list || is_text(value))) return nullptr;
  const auto length = static_cast<std::int64_t>(length_of(value)), index = as_integer(key, "an index");
  const std::int64_t at = index < 0 ? index + length : index;
  if (at < 0 || at >= length) return nullptr;
  if (is_list) return value->items[static_cast<std::size_t>(at)];
  const auto point = static_cast<unsigned>(at);
  return std::string(slice_code_points(as_text(value, ""), {point, point + 1}));
}

Value slice_of(const Value& value, const Value& start, const Value& stop, const Value& step) {
  if (!is_text(value) && !is_of(value, {Object::list, Object::tuple})) refuse("{} has no slices", type_name(value));
  const std::int64_t by = is_absent(step) ? 1 : as_integer(step, "the step of a slice");
  if (by == 0) refuse("the step of a slice is 0");
  const auto length = static_cast<std::int64_t>(length_of(value));
  const std::int64_t least = by > 0 ? 0 : -1, most = by > 0 ? length : length - 1;
  const auto bound = [&](const Value& each, std::int64_t absent) {
    const std::int64_t index = is_absent(each) ? absent : as_integer(each, "the bound of a slice");
    return is_absent(each) ? absent : std::clamp(index < 0 ? index + length : index, least, most);
  };
  const std::int64_t begin = bound(start, by > 0 ? least : most), end = bound(stop, by > 0 ? most : least);
  const auto pick = [&](const auto& from, auto to) {
    for (std::int64_t i = begin; by > 0 ? i < end : i > end; i += by) {
      to.push_back(from[static_cast<std::size_t>(i)]);
      if (by > 0 ? by >= end - i : by <= end - i) break;  // the next index might overflow
    }
    return to;
  };
  if (!is_text(value)) return list_of(pick(value->items, Values()), value->kind);
  return encode_utf8(pick(decode_utf8(as_text(value, "")), std::u32string()));
}

Value operate(std::string_view symbol, const Value& a, const Value& b) {
  if (symbol == "~") return text_of(a) + text_of(b);
  if (symbol == "==" || symbol == "!=") return is_equal(a, b) == (symbol == "==");
  if (symbol == "not in") return !is_true(operate("in", a, b));
  if (symbol == "in" && is_text(b)) return as_text(b, "").find(as_text(a, "'in' of a string")) != std::string::npos;
  if (symbol == "in") return std::ranges::any_of(items_of(b), [&](const Value& each) { return is_equal(each, a); });
  if (!a || !b) refuse("'{}' of an undefined value", symbol);
  if (symbol == "<" || symbol == ">=") return is_less(a, b) == (symbol == "<");
  if (symbol == ">" || symbol == "<=") return is_less(b, a) == (symbol == ">");
  if (is_number(a) && is_number(b)) return number_result(symbol, a, b);
  const bool is_list = is_of(a, {Object::list, Object::tuple});
  if (symbol == "+" && is_text(a) && is_text(b)) return as_text(a, "") + as_text(b, "");
  if (symbol == "+" && is_list && a->kind == b->kind) {
    Values items = a->items;
    items.insert(items.end(), b->items.begin(), b->items.end());
    return list_of(std::move(items), a->kind);
  }
  if (symbol == "*" && is_number(a)) return operate(symbol, b, a);
  if (symbol != "*" || !(is_text(a) || is_list))
    refuse("'{}' of {} and {} is not supported", symbol, type_name(a), type_name(b));
  return repeated(a, as_integer(b, "a factor"));
}

std::int64_t as_integer(const Value& value, std::string_view what) {
  if (!is_number(value) || value->json.is_number_float()) refuse("{} is {}, not an integer", what, type_name(value));
  if (value->json.is_number_unsigned() && value->json.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
    refuse("the integer {} has more than 64 bits", value->json.dump());
  }
  return number_of(value).get<std::int64_t>();
}

const std::string& as_text(const Value& value, std::string_view what) {
  if (is_text(value)) return value->json.get_ref<const std::string&>();
  refuse("{} is {}, not a string", what, type_name(value));
}

}  // namespace mylos::data::jinja
