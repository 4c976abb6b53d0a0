#include "data/images/pickle.hpp"

#include <fmt/format.h>

#include <unordered_map>

#include "core/base/error.hpp"

namespace mylos::data {

/// The stack machine of one pickle. Each opcode adds at most one value, so the input size bounds the memory.
class PickleMachine {
 public:
  PickleMachine(Pickle& pickle, std::string_view bytes) : pickle_(pickle), values_(pickle.values_), bytes_(bytes) {}

  void run() {
    while (true) {
      opcode_position_ = position_;
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') break;
      if (!push_number(opcode) && !push_text(opcode) && !build(opcode) && !remember(opcode)) refuse(opcode);
    }
    pickle_.root_ = pop();
    check(stack_.empty(), "leaves more than one object");
  }

 private:
  using Kind = Pickle::Kind;
  using Reference = Pickle::Reference;

  void check(bool condition, std::string_view problem) const {
    if (!condition) fail(fmt::format("is not a pickle: it {} at byte {}", problem, opcode_position_));
  }

  [[noreturn]] void refuse(unsigned char opcode) const {
    fail(
        fmt::format("is a pickle with opcode 0x{:02x} at byte {}, which is not read (known are those of protocols 2 "
                    "to 4 for numbers, texts, lists, dictionaries and NumPy arrays)",
                    opcode, opcode_position_));
  }

  std::string_view take(std::uint64_t count) {
    ensure(count <= bytes_.size() - position_, "ends early");
    const auto taken = bytes_.substr(position_, count);
    position_ += count;
    return taken;
  }

  std::uint64_t take_number(std::size_t width) {
    std::uint64_t value = 0;
    const auto taken = take(width);
    for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return value;
  }

  /// Returns the text up to the next line feed.
  std::string_view take_line() {
    const auto end = bytes_.find('\n', position_);
    ensure(end != std::string_view::npos, "ends early");
    const auto line = take(end - position_);
    take(1);
    return line;
  }

  void push(Kind kind, std::int64_t integer = 0, std::string_view text = {}, std::vector<Reference> items = {}) {
    values_.push_back({kind, integer, text, std::move(items)});
    stack_.push_back(values_.size() - 1);
  }

  Reference pop() {
    check(stack_.size() > (marks_.empty() ? 0 : marks_.back()), "takes from an empty stack");
    const Reference value = stack_.back();
    stack_.pop_back();
    return value;
  }

  std::vector<Reference> pop_items(std::size_t count) {
    std::vector<Reference> items(count);
    while (count > 0) items[--count] = pop();
    return items;
  }

  std::vector<Reference> pop_to_mark() {
    check(!marks_.empty(), "has no mark");
    auto items = pop_items(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }

  /// Adds to the list or dictionary on top of the stack.
  void extend(Kind kind, const std::vector<Reference>& items) {
    const Reference top = pop();
    stack_.push_back(top);
    check(values_[top].kind == kind, "adds to another object than a list or dictionary");
    check(kind == Kind::list || items.size() % 2 == 0, "has a key without a value");
    values_[top].items.insert(values_[top].items.end(), items.begin(), items.end());
  }

  bool push_number(unsigned char opcode) {
    switch (opcode) {
      case 'N':
        return push(Kind::none), true;
      case 0x88:
      case 0x89:
        return push(Kind::boolean, opcode == 0x88), true;
      case 'K':
        return push(Kind::integer, static_cast<std::int64_t>(take_number(1))), true;
      case 'M':
        return push(Kind::integer, static_cast<std::int64_t>(take_number(2))), true;
      case 'J':
        return push(Kind::integer, static_cast<std::int32_t>(take_number(4))), true;
      case 0x8a:
        return push_long(), true;
      case 'G':
        return take(8), push(Kind::real), true;
      default:
        return false;
    }
  }

  /// Pushes an integer of up to 8 bytes in two's complement.
  void push_long() {
    const auto width = static_cast<std::size_t>(take_number(1));
    check(width <= 8, "has an integer of more than 64 bits");
    std::uint64_t value = take_number(width);
    const bool is_negative = width > 0 && (value >> (8 * width - 1)) != 0;
    if (is_negative && width < 8) value |= ~std::uint64_t{0} << (8 * width);
    push(Kind::integer, static_cast<std::int64_t>(value));
  }

  bool push_text(unsigned char opcode) {
    switch (opcode) {
      case 'U':   // SHORT_BINSTRING
      case 'C':   // SHORT_BINBYTES
      case 0x8c:  // SHORT_BINUNICODE
        return push(Kind::text, 0, take(take_number(1))), true;
      case 'T':  // BINSTRING
      case 'B':  // BINBYTES
      case 'X':  // BINUNICODE
        return push(Kind::text, 0, take(take_number(4))), true;
      case 0x8d:  // BINUNICODE8
      case 0x8e:  // BINBYTES8
        return push(Kind::text, 0, take(take_number(8))), true;
      default:
        return false;
    }
  }

  bool build(unsigned char opcode) {
    switch (opcode) {
      case ']':
      case ')':
        return push(Kind::list), true;
      case '}':
        return push(Kind::dictionary), true;
      case '(':
        return marks_.push_back(stack_.size()), true;
      case 't':
        return push(Kind::list, 0, {}, pop_to_mark()), true;
      case 0x85:
      case 0x86:
      case 0x87:
        return push(Kind::list, 0, {}, pop_items(opcode - 0x84u)), true;
      case 'a':
        return extend(Kind::list, pop_items(1)), true;
      case 'e':
        return extend(Kind::list, pop_to_mark()), true;
      case 's':
        return extend(Kind::dictionary, pop_items(2)), true;
      case 'u':
        return extend(Kind::dictionary, pop_to_mark()), true;
      default:
        return build_object(opcode);
    }
  }

  bool build_object(unsigned char opcode) {
    switch (opcode) {
      case 'c':
        return push_global(), true;
      case 0x93: {  // STACK_GLOBAL
        const auto names = pop_items(2);
        return push(Kind::global, 0, values_[names[1]].text), true;
      }
      case 'R': {  // REDUCE: recorded, not called
        auto call = pop_items(2);
        values_.push_back({});
        call.push_back(values_.size() - 1);
        return push(Kind::call, 0, {}, std::move(call)), true;
      }
      case 'b': {  // BUILD: recorded, not executed
        const Reference state = pop();
        const Reference object = pop();
        stack_.push_back(object);
        check(values_[object].kind == Kind::call, "sets the state of something that is not an object");
        values_[object].items[2] = state;
        return true;
      }
      default:
        return false;
    }
  }

  void push_global() {
    take_line();  // the module
    push(Kind::global, 0, take_line());
  }

  bool remember(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        return check(take_number(1) <= 4, "is of a later protocol than 4"), true;
      case 0x95:  // FRAME
        return take(8), true;
      case 'q':
        return put(take_number(1)), true;
      case 'r':
        return put(take_number(4)), true;
      case 0x94:  // MEMOIZE
        return put(memo_.size()), true;
      case 'h':
        return get(take_number(1)), true;
      case 'j':
        return get(take_number(4)), true;
      default:
        return false;
    }
  }

  void put(std::uint64_t location) {
    memo_[location] = pop();
    stack_.push_back(memo_[location]);
  }

  void get(std::uint64_t location) {
    const auto found = memo_.find(location);
    check(found != memo_.end(), "asks for an object that does not exist");
    stack_.push_back(found->second);
  }

  Pickle& pickle_;
  std::vector<Pickle::Value>& values_;
  std::string_view bytes_;
  std::size_t position_ = 0;
  std::size_t opcode_position_ = 0;
  std::vector<Reference> stack_;
  std::vector<std::size_t> marks_;  ///< stack sizes
  std::unordered_map<std::uint64_t, Reference> memo_;
};

Pickle::Pickle(std::string_view bytes) { PickleMachine(*this, bytes).run(); }

std::optional<Pickle::Reference> Pickle::find(Reference dictionary, std::string_view key) const {
  const Value& value = values_[dictionary];
  if (value.kind != Kind::dictionary) return std::nullopt;
  for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
    const Value& found = values_[value.items[i]];
    if (found.kind == Kind::text && found.text == key) return value.items[i + 1];
  }
  return std::nullopt;
}

}  // namespace mylos::data
