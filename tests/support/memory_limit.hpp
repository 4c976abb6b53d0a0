#pragma once

#include <cstddef>

#include <sys/resource.h>

namespace mylos::tests {

/// Limits this process, during the lifetime of the object, to `bytes` more memory than it has. Larger requests throw
/// std::bad_alloc. The limit is on address space, so it cannot be used with the address sanitizer.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit old_limit_{};
};

}  // namespace mylos::tests
