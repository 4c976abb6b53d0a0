#include "train/memory.hpp"

#include <gtest/gtest.h>

namespace mylos::train {
namespace {

TEST(Memory, OfThisProcessAndMachineIsKnown) {
  EXPECT_GT(available_memory(), std::size_t{1} << 20);
  EXPECT_GT(resident_memory(), std::size_t{1} << 20);
  EXPECT_GE(peak_resident_memory(), resident_memory());
  release_unused_memory();
  EXPECT_GT(resident_memory(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace mylos::train
