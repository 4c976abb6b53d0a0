#include "train/memory.hpp"

#include <gtest/gtest.h>

namespace mylos::train {
namespace {

TEST(Memory, OfThisProcessAndMachineIsKnown) {
  EXPECT_GT(available_memory(), std::size_t{1} << 20);
  EXPECT_GT(resident_memory(), std::size_t{1} << 20);
  EXPECT_GE(peak_resident_memory(), resident_memory());
}

}  // namespace
}  // namespace mylos::train
