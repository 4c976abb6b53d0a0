#pragma once

#include "core/device.hpp"

#include <cstddef>
#include <string>

/// Memory for what one pass computes, planned before step 1: the same code takes arrays from a measuring arena first,
/// which only counts, and then in every step from one that was made that large. Nothing is allocated after that.
namespace mylos {

class Arena {
 public:
  /// A measuring arena: arrays taken from it have an extent but no memory.
  Arena() = default;
  /// Takes `bytes` of device memory at once. Errors: std::runtime_error if they are not to be had, with the amount.
  Arena(const std::string& label, std::size_t bytes);

  /// The next `size` elements, not filled; valid until the arena is rewound past them. Errors: beyond the capacity.
  template <class T>
  Vector<T> vector(std::size_t size) {
    return Vector<T>(reinterpret_cast<T*>(take(size * sizeof(T))), size);
  }
  template <class T>
  Matrix<T> matrix(std::size_t rows, std::size_t columns) {
    return Matrix<T>(reinterpret_cast<T*>(take(rows * columns * sizeof(T))), rows, columns);
  }

  /// Where the next array will start; `rewind` to it gives back all that was taken since.
  std::size_t mark() const { return used_; }
  void rewind(std::size_t mark) { used_ = mark; }

  bool measuring() const { return memory_.data() == nullptr; }
  /// The most bytes that were ever taken at once.
  std::size_t peak() const { return peak_; }
  std::size_t capacity() const { return memory_.size(); }

 private:
  std::byte* take(std::size_t bytes);

  Vector<std::byte> memory_;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
};

/// Gives back on destruction what was taken from the arena since construction.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.rewind(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  std::size_t mark_;
};

}  // namespace mylos
