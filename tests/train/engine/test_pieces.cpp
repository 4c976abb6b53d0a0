#include "train/engine/pieces.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace mylos::train {
namespace {

TEST(ForEachPiece, PiecesAreInOrderAndWhole) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, piece_elements, 2 * piece_elements + 3}) {
    std::size_t next = 0;
    for_each_piece(size, [&](std::size_t first, std::size_t count) {
      EXPECT_EQ(first, next);
      EXPECT_GT(count, 0u);
      EXPECT_LE(count, piece_elements);
      next += count;
    });
    EXPECT_EQ(next, size);
  }
}

}  // namespace
}  // namespace mylos::train
