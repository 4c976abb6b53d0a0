#include "train/row_pieces.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace mylos::train {
namespace {

TEST(RowPieces, AreInOrderAndWhole) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, piece_elements, 2 * piece_elements + 3}) {
    std::vector<float> all(size), read;
    std::iota(all.begin(), all.end(), 0.0f);
    const RowReader reader = [&](const std::string& name, std::size_t first, std::span<float> values) {
      EXPECT_EQ(name, "row");
      EXPECT_LE(values.size(), piece_elements);
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(first), values.size(), values.begin());
    };
    read_in_pieces(reader, "row", size,
                   [&](std::span<const float> values) { read.insert(read.end(), values.begin(), values.end()); });
    EXPECT_EQ(read, all);
  }
}

}  // namespace
}  // namespace mylos::train
