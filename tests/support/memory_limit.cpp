#include "tests/support/memory_limit.hpp"

#include "tests/support/sanitized.hpp"

#include <fstream>

#include <unistd.h>

namespace mylos::tests {

MemoryLimit::MemoryLimit(std::size_t bytes) {
  ::getrlimit(RLIMIT_AS, &old_limit_);
  if (heap_is_sanitized) return;
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit limit{pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes, old_limit_.rlim_max};
  ::setrlimit(RLIMIT_AS, &limit);
}

MemoryLimit::~MemoryLimit() { ::setrlimit(RLIMIT_AS, &old_limit_); }

}  // namespace mylos::tests
