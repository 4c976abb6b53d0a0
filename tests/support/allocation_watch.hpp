#pragma once

#include <cstddef>
#include <string>

/// Watches the heap: a program that links allocation_watch.cpp has malloc and its relatives in its own hands, and so
/// those of all libraries it calls.
namespace mylos::tests {

class AllocationWatch {
 public:
  /// Watches for allocations of more than `limit` bytes, by any thread, until `stop` or destruction. One at a time.
  explicit AllocationWatch(std::size_t limit);
  ~AllocationWatch() { stop(); }
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;

  void stop();
  /// How many there were, and who asked for the first.
  std::size_t count() const;
  std::string first() const;
  /// Those of OpenBLAS, which are not among them: each of its threaded products takes a table of jobs and gives it
  /// back. The table's size is a constant of its build (4 KiB for each CPU it may use), whatever the product's.
  std::size_t openblas_tables() const;

  /// False where sanitizers have malloc in their hands.
  static bool available();
};

}  // namespace mylos::tests
