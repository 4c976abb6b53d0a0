#pragma once

#include "core/base/error.hpp"
#include "core/base/shared_array.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

/// Values as bytes, for other processes of the same program on the same kind of machine. Not a file format.
///
/// Supports numbers, enumerations and structs of integers without padding; strings and paths; vectors, shared arrays,
/// pairs, maps, optionals and variants of supported types; and any type for which a function `members(value)` returns a
/// tuple of references to its members (std::tie).
namespace mylos {

/// Types that refer to memory outside of the value. Their bytes are meaningless in another process.
template <class Value>
inline constexpr bool is_reference = std::is_pointer_v<Value> || std::is_same_v<Value, std::string_view>;
template <class Element, std::size_t extent>
inline constexpr bool is_reference<std::span<Element, extent>> = true;

/// Types that are copied as they lie in memory. Padding, whose bytes are not initialised, is never copied.
template <class Value>
inline constexpr bool is_copied =
    std::has_unique_object_representations_v<Value> || std::is_same_v<Value, float> || std::is_same_v<Value, double>;

/// Shared arrays of at least this many bytes can be passed on by other means than the bytes.
inline constexpr std::size_t least_array_apart = std::size_t{64} << 10;

/// Appends values to bytes, which are collected or passed on in pieces.
class ByteWriter {
 public:
  /// Takes a piece. The string's memory is used again for the next one.
  using Sink = std::function<void(std::string& piece)>;
  /// Takes a large shared array. If it returns memory with the same values, the array moves there.
  using ArraySink = std::function<SharedBytes(std::span<const std::byte> array)>;

  ByteWriter() = default;
  /// Passes the bytes to `sink` in pieces of `piece` bytes. The last one may be shorter; finish() passes it. With
  /// `arrays`, also passes the bytes before each large shared array, then the array to `arrays`.
  ByteWriter(std::size_t piece, Sink sink, ArraySink arrays = {})
      : piece_(piece), sink_(std::move(sink)), arrays_(std::move(arrays)) {}

  template <class Value>
  void add(const Value& value) {
    if constexpr (is_copied<Value>) {
      static_assert(!is_reference<Value>, "an address means nothing to another process");
      append(&value, sizeof value);
    } else {
      // Reading and writing visit the same members, so that `members` need not be written twice.
      std::apply([this](const auto&... member) { (this->add(member), ...); }, members(const_cast<Value&>(value)));
    }
  }
  void add(const std::string& text) {
    add(text.size());
    append(text.data(), text.size());
  }
  void add(const std::filesystem::path& path) { add(path.string()); }
  template <class First, class Second>
  void add(const std::pair<First, Second>& pair) {
    add(pair.first);
    add(pair.second);
  }
  template <class Element>
  void add(const std::vector<Element>& elements) {
    add(elements.size());
    if constexpr (is_copied<Element>) {
      static_assert(!is_reference<Element>, "an address means nothing to another process");
      append(elements.data(), elements.size() * sizeof(Element));
    } else {
      for (const Element& element : elements) add(element);
    }
  }
  template <class Element>
  void add(const SharedArray<Element>& array) {
    static_assert(is_copied<Element> && !is_reference<Element>, "padding or addresses");
    const std::span<const std::byte> bytes = std::as_bytes(array.span());
    add(array.size());
    if (!arrays_ || bytes.size() < least_array_apart) return append(bytes.data(), bytes.size());
    finish();
    SharedBytes shared = arrays_(bytes);
    if (shared.memory) array.move_to(std::move(shared));
  }
  template <class Key, class Value>
  void add(const std::map<Key, Value>& entries) {
    add(entries.size());
    for (const auto& [key, value] : entries) {
      add(key);
      add(value);
    }
  }
  template <class Value>
  void add(const std::optional<Value>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  template <class... Values>
  void add(const std::variant<Values...>& value) {
    add(value.index());
    std::visit([&](const auto& held) { add(held); }, value);
  }

  /// Returns the collected bytes.
  std::string take() { return std::move(bytes_); }
  /// Passes on the bytes that are left.
  void finish() {
    if (!bytes_.empty()) pass_on();
  }

 private:
  void append(const void* data, std::size_t size) {
    const char* from = static_cast<const char*>(data);
    while (size > 0) {
      const std::size_t part = std::min(size, piece_ - bytes_.size());
      bytes_.append(from, part);
      from += part;
      size -= part;
      if (bytes_.size() == piece_) pass_on();
    }
  }
  void pass_on() {
    sink_(bytes_);
    bytes_.clear();
  }

  std::string bytes_;
  std::size_t piece_ = std::numeric_limits<std::size_t>::max();
  Sink sink_;
  ArraySink arrays_;
};

/// Reads values in the order in which ByteWriter added them. Errors: std::invalid_argument if the bytes end early.
class ByteReader {
 public:
  /// Returns the next piece, which stays valid until the next call; an empty one if there is none.
  using Source = std::function<std::string_view()>;
  /// Returns the next large shared array, of `bytes` bytes.
  using ArraySource = std::function<SharedBytes(std::size_t bytes)>;

  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  /// Reads pieces of any size, each of them when it is needed. With `arrays`, takes large shared arrays from there, as
  /// ByteWriter passed them on.
  explicit ByteReader(Source source, ArraySource arrays = {})
      : source_(std::move(source)), arrays_(std::move(arrays)) {}

  template <class Value>
  void read(Value& value) {
    if constexpr (is_copied<Value>) {
      copy(&value, sizeof value);
    } else {
      std::apply([this](auto&... member) { (this->read(member), ...); }, members(value));
    }
  }
  void read(std::string& text) {
    text.resize(read_size(sizeof(char)));
    copy(text.data(), text.size());
  }
  void read(std::filesystem::path& path) {
    std::string text;
    read(text);
    path = std::move(text);
  }
  template <class First, class Second>
  void read(std::pair<First, Second>& pair) {
    read(pair.first);
    read(pair.second);
  }
  template <class Element>
  void read(std::vector<Element>& elements) {
    if constexpr (is_copied<Element>) {
      elements.resize(read_size(sizeof(Element)));
      copy(elements.data(), elements.size() * sizeof(Element));
    } else {
      std::size_t left = read_size(1);
      elements.clear();
      elements.reserve(left);
      for (; left > 0; --left) read(elements.emplace_back());
    }
  }
  template <class Element>
  void read(SharedArray<Element>& array) {
    std::size_t size = 0;
    read(size);
    if (arrays_ && size * sizeof(Element) >= least_array_apart) {
      require(bytes_.empty(), "bytes are left before an array");
      array = SharedArray<Element>(arrays_(size * sizeof(Element)));
      return;
    }
    require(source_ || size <= bytes_.size() / sizeof(Element), "truncated value");
    std::vector<Element> values(size);
    copy(values.data(), size * sizeof(Element));
    array = std::move(values);
  }
  template <class Key, class Value>
  void read(std::map<Key, Value>& entries) {
    entries.clear();
    for (std::size_t left = read_size(); left > 0; --left) {
      Key key{};
      read(key);
      read(entries[std::move(key)]);
    }
  }
  template <class Value>
  void read(std::optional<Value>& value) {
    bool has_value = false;
    read(has_value);
    value.reset();
    if (has_value) read(value.emplace());
  }
  template <class... Values>
  void read(std::variant<Values...>& value) {
    read_alternative(value, read_size(), std::index_sequence_for<Values...>());
  }

  /// Returns true if all bytes have been read, or all bytes of the last piece.
  bool at_end() const { return bytes_.empty(); }

 private:
  /// Reads a number of elements of at least `bytes` each.
  std::size_t read_size(std::size_t bytes = 0) {
    std::size_t size = 0;
    read(size);
    require(source_ || bytes == 0 || size <= bytes_.size() / bytes, "truncated value");
    return size;
  }
  template <class Variant, std::size_t... alternatives>
  void read_alternative(Variant& value, std::size_t index, std::index_sequence<alternatives...>) {
    const bool is_found = ((index == alternatives && (read(value.template emplace<alternatives>()), true)) || ...);
    require(is_found, "a variant has no such alternative");
  }
  void copy(void* to, std::size_t size) {
    char* out = static_cast<char*>(to);
    while (size > 0) {
      if (bytes_.empty() && source_) bytes_ = source_();
      require(!bytes_.empty(), "truncated value");
      const std::size_t part = std::min(size, bytes_.size());
      std::memcpy(out, bytes_.data(), part);
      bytes_.remove_prefix(part);
      out += part;
      size -= part;
    }
  }

  std::string_view bytes_;
  Source source_;
  ArraySource arrays_;
};

template <class Value>
std::string bytes_of_value(const Value& value) {
  ByteWriter writer;
  writer.add(value);
  return writer.take();
}

/// Errors: std::invalid_argument if `bytes` are not those of a Value.
template <class Value>
Value value_of_bytes(std::string_view bytes) {
  Value value{};
  ByteReader reader(bytes);
  reader.read(value);
  require(reader.at_end(), "bytes are left behind a value");
  return value;
}

}  // namespace mylos
