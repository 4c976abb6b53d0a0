#pragma once

#include "core/base/error.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace mylos {

/// Constant values and the memory that holds them, such as memory that several processes share.
struct SharedBytes {
  std::span<const std::byte> bytes = {};
  std::shared_ptr<const void> memory = {};  ///< keeps `bytes`; null if there are none
};

/// A large array of a data set. It is filled as a vector, in memory of this process. Later it may move to memory that
/// several processes read; then it can no longer be changed. A copy shares such memory.
template <class Element>
class SharedArray {
  static_assert(std::is_trivially_copyable_v<Element>, "another process reads the bytes");

 public:
  using value_type = Element;
  using const_iterator = const Element*;
  using iterator = const_iterator;

  SharedArray() = default;
  SharedArray(std::initializer_list<Element> values) : values_(values) {}
  SharedArray(std::vector<Element> values) : values_(std::move(values)) {}
  /// Uses memory that contains the values, aligned for them.
  explicit SharedArray(SharedBytes shared) { move_to(std::move(shared)); }

  std::span<const Element> span() const {
    if (!shared_.memory) return values_;
    return {reinterpret_cast<const Element*>(shared_.bytes.data()), shared_.bytes.size() / sizeof(Element)};
  }
  const Element* data() const { return span().data(); }
  std::size_t size() const { return span().size(); }
  bool empty() const { return span().empty(); }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return begin() + size(); }
  const Element& operator[](std::size_t index) const { return data()[index]; }
  const Element& front() const { return span().front(); }
  const Element& back() const { return span().back(); }

  friend bool operator==(const SharedArray& a, const SharedArray& b) { return std::ranges::equal(a.span(), b.span()); }

  /// Returns the vector, which may be changed. Errors: std::invalid_argument after move_to.
  std::vector<Element>& values() {
    require(!shared_.memory, "an array in shared memory cannot be changed");
    return values_;
  }

  /// Continues with `shared`, which contains the same values, and frees the vector. Spans and pointers into the array
  /// become invalid. The values stay the same, so it may be called on a constant array, by one thread.
  void move_to(SharedBytes shared) const {
    shared_ = std::move(shared);
    values_ = {};
  }

 private:
  mutable std::vector<Element> values_;
  mutable SharedBytes shared_;  ///< replaces values_, unless its memory is null
};

}  // namespace mylos
