#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

/// Simulates memory without space for a large array, for programs started with LD_PRELOAD naming this library: Kokkos'
/// allocations of MYLOS_LARGEST_ARRAY bytes or more fail.
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  const char* const largest = std::getenv("MYLOS_LARGEST_ARRAY");
  if (largest != nullptr && size >= std::strtoull(largest, nullptr, 10)) return nullptr;
  const auto unit = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(unit, std::max((size + unit - 1) / unit, std::size_t{1}) * unit);
}
