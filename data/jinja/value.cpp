#include "data/jinja/value.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text/python_text.hpp"
#include "core/base/text/unicode.hpp"

namespace mylos::data::jinja {
namespace {

constexpr std::size_t max_weight = std::size_t{16} << 20, item_weight = 32, max_depth = 100;

const char* type_name(const Value& value) { return value ? value->type_name() : "undefined"; }

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

void write(std::string& out, const Json& json, bool is_json, int indent, int level) {
  if (json.is_number_float()) out += python_repr(json.get<double>());
  if (json.is_string() && !is_json) out += quoted(json.get_ref<const std::string&>());
  if (json.is_null() && !is_json) out += "None";
  if (json.is_boolean() && !is_json) out += json.get<bool>() ? "True" : "False";
  if (!json.is_structured() && (is_json || json.is_number_integer()) && !json.is_number_float()) out += json.dump();
  ensure_weight(out.size());
  if (!json.is_structured()) return;
  const auto new_line = [&](int depth) {
    if (indent >= 0 && !json.empty()) out += '\n' + std::string(static_cast<std::size_t>(indent * depth), ' ');
  };
  out += json.is_object() ? '{' : '[';
  std::size_t count = 0;
  for (const auto& [key, item] : json.items()) {
    if (count++ > 0) out += indent >= 0 ? "," : ", ";
    new_line(level + 1);
    if (json.is_object()) out += (is_json ? Json(key).dump() : quoted(key)) + ": ";
    write(out, item, is_json, indent, level + 1);
  }
  new_line(level);
  out += json.is_object() ? '}' : ']';
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
  if (a->is_number_float() || b->is_number_float() || symbol == "/") {
    const auto as_real = [](const Json& json) {
      return json.is_boolean() ? (json.get<bool>() ? 1.0 : 0.0) : json.get<double>();
    };
    const double result = compute(as_real(*a), as_real(*b));
    if (!std::isfinite(result)) refuse("a number is not finite");
    return result;
  }
  const long double x = as_integer(a, "a number"), y = as_integer(b, "a number"), result = compute(x, y);
  if (std::abs(result) >= 0x1p63L) refuse("an integer has more than 64 bits");
  return static_cast<std::int64_t>(result);
}

bool is_less(const Value& a, const Value& b) {
  const auto number = [](const Value& value) { return value->is_boolean() ? Json(int{value->get<bool>()}) : *value; };
  if (is_number(a) && is_number(b)) return number(a) < number(b);
  if (a->is_string() && b->is_string()) return *a < *b;
  refuse("{} and {} have no order", type_name(a), type_name(b));
}

bool contains(const Value& container, const Value& item) {
  if (!container || !item) return false;
  if (container->is_string())
    return as_text(container, "").find(as_text(item, "'in' of a string")) != std::string::npos;
  const Values items = items_of(container);
  return std::ranges::any_of(items, [&](const Value& each) { return is_equal(each, item); });
}

}  // namespace

void ensure_weight(std::size_t weight) {
  if (weight > max_weight) refuse("a value is larger than {} bytes", max_weight);
}

std::size_t weight_of(const Json& json, std::size_t depth) {
  if (depth > max_depth) refuse("a value nests deeper than {} levels", max_depth);
  std::size_t weight = item_weight + (json.is_string() ? json.get_ref<const std::string&>().size() : 0);
  for (const auto& [key, item] : json.items()) {
    if (json.is_structured()) weight += weight_of(item, depth + 1) + (json.is_object() ? key.size() : 0);
  }
  ensure_weight(weight);
  return weight;
}

bool is_number(const Value& value) { return value && (value->is_number() || value->is_boolean()); }

bool is_true(const Value& value) {
  if (is_number(value)) return value->is_boolean() ? value->get<bool>() : *value != 0;
  return value && (value->is_string() ? !as_text(value, "").empty() : !value->empty());
}

bool is_equal(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return !is_less(a, b) && !is_less(b, a);
  return !a || !b ? !a && !b : nlohmann::json(*a) == nlohmann::json(*b);  // without regard to the order of members
}

const Json& defined(const Value& value) {
  if (!value) refuse("a list or dict cannot hold an undefined value");
  return *value;
}

Json list_of(const Values& values) {
  Json list = Json::array();
  for (const Value& value : values) list.push_back(defined(value));
  return list;
}

std::string text_of(const Value& value) {
  if (!value) return "";
  return value->is_string() ? value->get<std::string>() : written(*value, false);
}

std::string written(const Json& json, bool is_json, int indent) {
  std::string out;
  write(out, json, is_json, indent, 0);
  return out;
}

Values items_of(const Value& value) {
  Values items;
  if (!value) return items;
  if (value->is_string()) {
    if (value->get_ref<const std::string&>().size() > max_weight / item_weight) refuse("a text is too long for a list");
    for (const char32_t c : decode_utf8(as_text(value, ""))) items.push_back(from_json(encode_utf8({&c, 1})));
    return items;
  }
  if (!value->is_structured()) refuse("{} cannot be iterated over", type_name(value));
  for (const auto& [key, item] : value->items())
    items.push_back(value->is_object() ? from_json(key) : Value(value, &item));
  return items;
}

std::size_t length_of(const Value& value) {
  if (value && value->is_string()) return count_code_points(as_text(value, ""));
  if (value && !value->is_structured()) refuse("{} has no length", type_name(value));
  return value ? value->size() : 0;
}

Value item_of(const Value& value, const Value& key) {
  if (!value) refuse("an undefined value has no member {}", key ? written(*key, false) : "");
  if (value->is_object() && key && key->is_string()) {
    const auto found = value->find(as_text(key, ""));
    return found == value->end() ? nullptr : Value(value, &*found);
  }
  if (!key || !key->is_number_integer() || !(value->is_array() || value->is_string())) return nullptr;
  const auto length = static_cast<std::int64_t>(length_of(value)), index = as_integer(key, "an index");
  const std::int64_t at = index < 0 ? index + length : index;
  if (at < 0 || at >= length) return nullptr;
  if (value->is_array()) return {value, &(*value)[static_cast<std::size_t>(at)]};
  const auto point = static_cast<unsigned>(at);
  return from_json(std::string(slice_code_points(as_text(value, ""), {point, point + 1})));
}

Json slice_of(const Value& value, const Value& start, const Value& stop, const Value& step) {
  const bool is_text = value && value->is_string();
  if (!is_text && !(value && value->is_array())) refuse("{} has no slices", type_name(value));
  const auto given = [](const Value& each) { return each && !each->is_null(); };
  const std::int64_t by = given(step) ? as_integer(step, "the step of a slice") : 1;
  if (by == 0) refuse("the step of a slice is 0");
  const auto length = static_cast<std::int64_t>(length_of(value));
  const std::int64_t least = by > 0 ? 0 : -1, most = by > 0 ? length : length - 1;
  const auto bound = [&](const Value& each, std::int64_t absent) {
    const std::int64_t index = given(each) ? as_integer(each, "the bound of a slice") : absent;
    return given(each) ? std::clamp(index < 0 ? index + length : index, least, most) : absent;
  };
  const std::u32string points = is_text ? decode_utf8(as_text(value, "")) : U"";
  std::u32string text;
  Json items = Json::array();
  const std::int64_t end = bound(stop, by > 0 ? most : least);
  for (std::int64_t i = bound(start, by > 0 ? least : most); by > 0 ? i < end : i > end; i += by) {
    const auto at = static_cast<std::size_t>(i);
    is_text ? text.push_back(points[at]) : items.push_back((*value)[at]);
    if (by > 0 ? by >= end - i : by <= end - i) break;  // the next index might overflow
  }
  return is_text ? Json(encode_utf8(text)) : items;
}

Json operate(std::string_view symbol, const Value& a, const Value& b) {
  if (symbol == "~") return text_of(a) + text_of(b);
  if (symbol == "==" || symbol == "!=") return is_equal(a, b) == (symbol == "==");
  if (symbol == "in" || symbol == "not in") return contains(b, a) == (symbol == "in");
  if (!a || !b) refuse("'{}' of an undefined value", symbol);
  if (symbol == "<" || symbol == ">=") return is_less(a, b) == (symbol == "<");
  if (symbol == ">" || symbol == "<=") return is_less(b, a) == (symbol == ">");
  if (is_number(a) && is_number(b)) return number_result(symbol, a, b);
  if (symbol == "+" && a->is_string() && b->is_string()) return as_text(a, "") + as_text(b, "");
  if (symbol == "+" && a->is_array() && b->is_array()) {
    Json items = *a;
    items.insert(items.end(), b->begin(), b->end());
    return items;
  }
  if (symbol != "*" || !a->is_string())
    refuse("'{}' of {} and {} is not supported", symbol, type_name(a), type_name(b));
  const std::int64_t times = as_text(a, "").empty() ? 0 : as_integer(b, "the factor of a string");
  if (times > 0)
    ensure_weight(static_cast<std::size_t>(std::min<std::int64_t>(times, max_weight + 1)) *
                  a->get_ref<const std::string&>().size());
  std::string text;
  for (std::int64_t i = 0; i < times; ++i) text += as_text(a, "");
  return text;
}

std::int64_t as_integer(const Value& value, std::string_view what) {
  if (!value || !(value->is_number_integer() || value->is_boolean()))
    refuse("{} is {}, not an integer", what, type_name(value));
  if (value->is_boolean()) return value->get<bool>() ? 1 : 0;
  if (value->is_number_unsigned() && value->get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
    refuse("the integer {} has more than 64 bits", value->dump());
  }
  return value->get<std::int64_t>();
}

const std::string& as_text(const Value& value, std::string_view what) {
  if (value && value->is_string()) return value->get_ref<const std::string&>();
  refuse("{} is {}, not a string", what, type_name(value));
}

}  // namespace mylos::data::jinja
