#include "tests/support/memory_limit.hpp"

#include "tests/support/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include <unistd.h>

namespace mylos::tests {

MemoryLimit::MemoryLimit(std::size_t bytes) {
  ::getrlimit(RLIMIT_AS, &old_limit_);
  if (heap_is_sanitized) return;
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
  const rlimit limit{std::min(most, old_limit_.rlim_max), old_limit_.rlim_max};
  EXPECT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
}

MemoryLimit::~MemoryLimit() { ::setrlimit(RLIMIT_AS, &old_limit_); }

}  // namespace mylos::tests
