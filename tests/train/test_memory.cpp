#include "train/memory.hpp"

#include "core/device.hpp"

#include <gtest/gtest.h>

namespace mylos::train {
namespace {

TEST(Memory, OfThisProcessAndMachineIsKnown) {
  EXPECT_GT(available_memory(), std::size_t{1} << 20);
  EXPECT_GT(resident_memory(), std::size_t{1} << 20);
  if (runs_on_host) {  // a device's changes with what other processes take
    EXPECT_GE(peak_resident_memory(), resident_memory());
  }
  release_unused_memory();
  EXPECT_GT(resident_memory(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace mylos::train
