#pragma once

#include <cstddef>
#include <string>

/// Watches the heap. A program that links allocation_watch.cpp overrides malloc and related functions, also for all
/// libraries that it calls.
namespace mylos::tests {

class AllocationWatch {
 public:
  /// Counts allocations of more than `limit` bytes by any thread until `stop` or destruction. Only one at a time.
  explicit AllocationWatch(std::size_t limit);
  ~AllocationWatch() { stop(); }
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;

  void stop();
  /// Number of such allocations, and the caller of the first.
  std::size_t count() const;
  std::string first() const;
  /// Number of OpenBLAS's allocations, which are not included in count(): each threaded product allocates and frees a
  /// job table. Its size is a constant of the OpenBLAS build (4 KiB per supported CPU), independent of the product's
  /// size.
  std::size_t openblas_tables() const;

  /// False if sanitizers override malloc.
  static bool available();
};

}  // namespace mylos::tests
