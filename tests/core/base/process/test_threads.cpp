#include "core/base/process/threads.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/memory_limit.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/temporary.hpp"

namespace mylos {
namespace {

TEST(Threads, AreStartedAndChecked) {
  std::atomic<int> calls = 0;
  start_thread([&] { ++calls; }).join();
  EXPECT_EQ(calls, 1);
  check_threads(0);
  check_threads(3);
}

TEST(Threads, ALimitThatRefusesThemIsNamed) {
  if (tests::heap_is_sanitized) GTEST_SKIP() << "the limit is on address space";
  std::string error;
  {
    const tests::MemoryLimit limit(std::size_t{16} << 20);  // the stacks of a few threads
    error = tests::error_of([] { check_threads(64); });
  }
  EXPECT_THAT(error,
              testing::MatchesRegex("no thread could be started: .*ulimit -v allows .*; raise the limit, or .*"));
}

}  // namespace
}  // namespace mylos
