// NumPy pickles an array as a call of _reconstruct whose state is then set to (1, shape, dtype, is_fortran, bytes), and
// a dtype as a call dtype("u1", ...). Python 3 writes bytes in protocol 2 as a call _codecs.encode(text, "latin1").
#include <fmt/format.h>

#include "core/base/error.hpp"
#include "data/images/pickle.hpp"

namespace mylos::data {
namespace {

using Value = Pickle::Value;
using Kind = Pickle::Kind;

/// True if `value` is a call of the global `name` in any module.
bool is_call(const Pickle& pickle, const Value& value, std::string_view name) {
  return value.kind == Kind::call && pickle[value.items[0]].kind == Kind::global && pickle[value.items[0]].text == name;
}

/// Returns an argument of a call, or null.
const Value* argument(const Pickle& pickle, const Value& call, std::size_t index) {
  const Value& arguments = pickle[call.items[1]];
  return arguments.kind == Kind::list && index < arguments.items.size() ? &pickle[arguments.items[index]] : nullptr;
}

bool is_text(const Value* value, std::string_view text) {
  return value != nullptr && value->kind == Kind::text && value->text == text;
}

/// Returns the Latin-1 bytes of `text`, which is UTF-8.
std::string latin1_bytes(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      bytes += text[i];
      continue;
    }
    const bool is_pair = (lead == 0xC2 || lead == 0xC3) && i + 1 < text.size() && (text[i + 1] & 0xC0) == 0x80;
    ensure(is_pair, "has bytes written as text that is not Latin-1");
    bytes += static_cast<char>((lead & 3) << 6 | (text[++i] & 0x3F));
  }
  return bytes;
}

std::string bytes_of(const Pickle& pickle, const Value& value) {
  if (value.kind == Kind::text) return std::string(value.text);
  if (is_call(pickle, value, "encode") && is_text(argument(pickle, value, 1), "latin1")) {
    const Value* text = argument(pickle, value, 0);
    if (text->kind == Kind::text) return latin1_bytes(text->text);
  }
  fail("has an array whose content is not bytes");
}

}  // namespace

PickledArray pickled_array(const Pickle& pickle, Pickle::Reference location) {
  const Value& object = pickle[location];
  ensure(is_call(pickle, object, "_reconstruct"), "has no NumPy array where one is expected");
  const Value& state = pickle[object.items[2]];
  ensure(state.kind == Kind::list && state.items.size() == 5, "has a NumPy array of an unknown form");
  const Value &sizes = pickle[state.items[1]], &type = pickle[state.items[2]], &order = pickle[state.items[3]];
  ensure(is_call(pickle, type, "dtype") && is_text(argument(pickle, type, 0), "u1"),
         "has a NumPy array of another element type than uint8");
  ensure(order.kind == Kind::boolean && order.integer == 0, "has a NumPy array in Fortran's order");
  PickledArray array{.bytes = bytes_of(pickle, pickle[state.items[4]])};
  std::size_t size = 1;
  for (const auto item : sizes.items) {
    const std::int64_t extent = pickle[item].integer;
    const bool fits = extent > 0 && size <= array.bytes.size() / static_cast<std::size_t>(extent);
    ensure(fits, fmt::format("has a NumPy array whose sizes are not those of its {} bytes", array.bytes.size()));
    array.shape.push_back(static_cast<std::size_t>(extent));
    size *= static_cast<std::size_t>(extent);
  }
  ensure(size == array.bytes.size(),
         fmt::format("has a NumPy array of {} elements with {} bytes", size, array.bytes.size()));
  return array;
}

}  // namespace mylos::data
