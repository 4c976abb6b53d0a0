#pragma once

#include "core/device.hpp"

#include <cstddef>
#include <string>

/// Memory for the activations of one pass, planned before step 1. The same code first takes its arrays from a measuring
/// arena, which only counts bytes, and then, in every step, from an arena allocated with that size. No device memory is
/// allocated after that.
namespace mylos {

class Arena {
 public:
  /// Creates a measuring arena: its arrays have extents but no memory.
  Arena() = default;
  /// Allocates `bytes` of device memory. Errors: std::runtime_error with the amount if the allocation fails.
  Arena(const std::string& label, std::size_t bytes);

  /// Returns the next `size` elements, uninitialized; they stay valid until the arena is rewound past them. Errors:
  /// beyond the capacity.
  template <class T>
  Vector<T> vector(std::size_t size) {
    return Vector<T>(reinterpret_cast<T*>(take(size * sizeof(T))), size);
  }
  template <class T>
  Matrix<T> matrix(std::size_t rows, std::size_t columns) {
    return Matrix<T>(reinterpret_cast<T*>(take(rows * columns * sizeof(T))), rows, columns);
  }

  /// Returns the start of the next array; `rewind` to it frees everything taken since.
  std::size_t mark() const { return used_; }
  void rewind(std::size_t mark) { used_ = mark; }

  bool measuring() const { return memory_.data() == nullptr; }
  /// The largest number of bytes in use at once so far.
  std::size_t peak() const { return peak_; }
  std::size_t capacity() const { return memory_.size(); }

 private:
  std::byte* take(std::size_t bytes);

  Vector<std::byte> memory_;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
};

/// Frees on destruction everything taken from the arena since construction.
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
