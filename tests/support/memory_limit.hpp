#pragma once

#include <cstddef>

#include <sys/resource.h>

namespace mylos::tests {

/// Lets this process take at most `bytes` more memory than it has while the object lives; what asks for more gets
/// std::bad_alloc. Counts address space, so it is not for programs of the address sanitizer.
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
