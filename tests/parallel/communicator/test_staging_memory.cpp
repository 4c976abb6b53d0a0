#include "parallel/communicator/staging_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace mylos::parallel {
namespace {

TEST(StagingMemory, IsKeptFromOneUseToTheNext) {
  StagingMemory memory;
  EXPECT_EQ(memory.size(), 0u);
  StagingMemory::Block first = memory.take(1000);
  std::byte* const position = first.get();
  std::memset(position, 1, 1000);
  first.reset();
  EXPECT_EQ(memory.take(1000).get(), position);
  EXPECT_EQ(memory.take(600).get(), position) << "a little larger does as well";
  EXPECT_EQ(memory.size(), 1000u);
}

TEST(StagingMemory, WhatIsInUseIsNobodyElses) {
  StagingMemory memory;
  const StagingMemory::Block first = memory.take(100), copy = first;
  StagingMemory::Block second = memory.take(100);
  EXPECT_NE(first.get(), second.get());
  EXPECT_EQ(memory.size(), 200u);
  std::byte* const position = second.get();
  second.reset();
  EXPECT_EQ(memory.take(100).get(), position);
}

TEST(StagingMemory, LittleDoesNotTakeWhatIsForMuch) {
  StagingMemory memory;
  std::byte* const large = memory.take(10'000).get();
  std::byte* const small = memory.take(100).get();
  EXPECT_NE(small, large);
  EXPECT_EQ(memory.take(10'000).get(), large);
  EXPECT_EQ(memory.take(90).get(), small);
  EXPECT_EQ(memory.size(), 10'100u);
}

/// A plan counts blocks by their sizes alone.
TEST(StagingBlocks, AreThoseOfAnImageMemory) {
  StagingMemory memory;
  StagingBlocks blocks;
  for (const std::size_t first : {1000u, 100u, 0u, 600u}) {
    for (const std::size_t second : {90u, 400u, 2100u}) {
      const StagingMemory::Block one = memory.take(first), two = memory.take(second);
      const std::size_t sizes[] = {blocks.take(first), blocks.take(second)};
      EXPECT_EQ(blocks.size(), memory.size());
      for (const std::size_t size : sizes) blocks.give_back(size);
    }
  }
  EXPECT_GT(blocks.size(), 1000u + 2100u);
}

TEST(StagingMemory, OfNothingIsABlock) {
  StagingMemory memory;
  EXPECT_NE(memory.take(0), nullptr);
}

TEST(StagingMemory, BlocksMayGoInAnotherThread) {
  StagingMemory memory;
  std::byte* position = nullptr;
  {
    StagingMemory::Block block = memory.take(64);
    position = block.get();
    std::thread([moved = std::move(block)]() mutable { moved.reset(); }).join();
  }
  EXPECT_EQ(memory.take(64).get(), position);
}

}  // namespace
}  // namespace mylos::parallel
