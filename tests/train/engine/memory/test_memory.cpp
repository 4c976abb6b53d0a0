#include "train/engine/memory/memory.hpp"

#include "core/device.hpp"
#include "tests/support/sanitized.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstring>

namespace mylos::train {
namespace {

TEST(Memory, OfThisProcessAndMachineIsKnown) {
  EXPECT_GT(available_memory(), std::size_t{1} << 20);
  EXPECT_GT(resident_memory(), std::size_t{1} << 20);
  if (runs_on_host) {  // on a device, it depends on other processes
    EXPECT_GE(peak_resident_memory(), resident_memory());
  }
  release_unused_memory();
  EXPECT_GT(resident_memory(), std::size_t{1} << 20);
}

TEST(Memory, ThePeakCountsFromWhereItWasReset) {
  if (!runs_on_host || tests::heap_is_sanitized) GTEST_SKIP() << "the peak is not this program's own";
  constexpr std::size_t large = std::size_t{256} << 20;
  const auto touch = [](std::size_t bytes) {
    void* const taken = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(taken, MAP_FAILED);
    std::memset(taken, 1, bytes);
    ::munmap(taken, bytes);
  };
  touch(large);
  const std::size_t before = peak_resident_memory();
  if (!reset_peak_resident_memory()) GTEST_SKIP() << "this system does not let a process reset its peak";
  EXPECT_LT(peak_resident_memory(), before - large / 2);
  touch(large / 4);
  EXPECT_GT(peak_resident_memory(), resident_memory() + large / 8);
  EXPECT_LT(peak_resident_memory(), before - large / 2);
}

TEST(Memory, TheAddressSpaceBoundsWhatIsAvailable) {
  if (!runs_on_host || tests::heap_is_sanitized) GTEST_SKIP() << "the address space is not this program's to limit";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  constexpr std::size_t limit = std::size_t{1} << 32;
  const rlimit lower{limit, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &lower), 0);
  const std::size_t alone = available_memory(), shared = available_memory(4);
  const std::string note = address_space_note();
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT_LT(alone, limit);
  EXPECT_LE(shared, alone);
  EXPECT_EQ(note, " (the address space is limited to 4.00 GiB: ulimit -v)");
  if (before.rlim_cur == RLIM_INFINITY) {
    EXPECT_EQ(address_space_note(), "");
  }
}

}  // namespace
}  // namespace mylos::train
