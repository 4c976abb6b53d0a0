#include "core/base/shared_array.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

namespace mylos {
namespace {

using ::testing::ElementsAre;
using Numbers = SharedArray<std::int32_t>;

/// Returns memory with the values of `numbers`, which `owner` keeps.
SharedBytes shared_bytes_of(const std::shared_ptr<std::vector<std::int32_t>>& owner) {
  return {std::as_bytes(std::span(*owner)), owner};
}

TEST(SharedArray, IsFilledAsAVector) {
  Numbers numbers;
  EXPECT_TRUE(numbers.empty());
  numbers.values().push_back(3);
  numbers.values().insert(numbers.values().end(), {1, 4});
  EXPECT_THAT(numbers, ElementsAre(3, 1, 4));
  EXPECT_EQ(numbers.size(), 3u);
  EXPECT_EQ(numbers[1], 1);
  EXPECT_EQ(numbers.front(), 3);
  EXPECT_EQ(numbers.back(), 4);
  EXPECT_EQ(numbers, Numbers({3, 1, 4}));
  EXPECT_FALSE(numbers == Numbers({3, 1}));
  Numbers copy = numbers;
  copy.values()[0] = 7;
  EXPECT_EQ(numbers[0], 3) << "a copy is of its own";
}

TEST(SharedArray, ContinuesInOtherMemoryAndFreesItsOwn) {
  const Numbers numbers = {3, 1, 4};
  const auto owner = std::make_shared<std::vector<std::int32_t>>(numbers.begin(), numbers.end());
  const std::int32_t* const before = numbers.data();
  numbers.move_to(shared_bytes_of(owner));
  EXPECT_NE(numbers.data(), before);
  EXPECT_EQ(numbers.data(), owner->data());
  EXPECT_THAT(numbers, ElementsAre(3, 1, 4));
  const Numbers copy = numbers;
  EXPECT_EQ(copy.data(), owner->data()) << "a copy shares the memory";
  EXPECT_EQ(owner.use_count(), 3);
}

TEST(SharedArray, CannotBeChangedInSharedMemory) {
  const auto owner = std::make_shared<std::vector<std::int32_t>>(2, 5);
  Numbers numbers(shared_bytes_of(owner));
  EXPECT_THAT(numbers, ElementsAre(5, 5));
  EXPECT_THROW(numbers.values(), std::invalid_argument);
  numbers = std::vector<std::int32_t>{6};
  EXPECT_EQ(owner.use_count(), 1);
  numbers.values().push_back(7);
  EXPECT_THAT(numbers, ElementsAre(6, 7));
}

TEST(SharedArray, KeepsItsMemoryUntilTheLastCopyEnds) {
  std::weak_ptr<std::vector<std::int32_t>> kept;
  Numbers numbers;
  {
    const auto owner = std::make_shared<std::vector<std::int32_t>>(2, 5);
    kept = owner;
    numbers = Numbers(shared_bytes_of(owner));
  }
  Numbers moved = std::move(numbers);
  EXPECT_THAT(moved, ElementsAre(5, 5));
  moved = {};
  EXPECT_TRUE(kept.expired());
}

}  // namespace
}  // namespace mylos
