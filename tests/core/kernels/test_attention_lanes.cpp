#include "core/kernels/attention_lanes.hpp"

#include "core/device.hpp"
#include "tests/core/kernels/attention_twin.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#if !defined(MYLOS_DEVICE_BUILD)
#include "core/kernels/attention_lanes_blocks.hpp"
#endif

namespace mylos {
namespace {

constexpr int most_rows = 33;

/// Sequences of each length give every number of rows to some product, and with it every height of a register tile.
TEST(AttentionRows, OfEachNumberEqualNaiveTwin) {
  std::vector<std::size_t> lengths(most_rows);
  std::iota(lengths.begin(), lengths.end(), std::size_t{1});
  for (const std::size_t head_size : {32, 64, 128}) {
    for (const bool causal : {false, true}) {
      for (const float dropout : {0.0f, 0.1f}) {
        SCOPED_TRACE(testing::Message() << "heads of " << head_size << (causal ? ", causal" : "") << ", dropout "
                                        << dropout);
        tests::compare_with_naive<float>({"", 2, 1, head_size, causal, dropout, lengths});
      }
    }
  }
}

#if !defined(MYLOS_DEVICE_BUILD)
constexpr float untouched = -77.0f;

std::vector<float> normal_floats(std::size_t count, std::uint64_t stream) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(normal(5, stream, i));
  return values;
}

/// A product of attention in lanes, whose left operand is read along its rows or along its columns.
struct LaneProduct {
  int rows, columns, inner;
  bool accumulate, by_columns;
  int stride = columns + 3;
  std::vector<float> a = normal_floats(static_cast<std::size_t>(rows) * inner, 1),
                     b = normal_floats(static_cast<std::size_t>(inner) * stride, 2);

  attention::Left<float> left() const {
    return by_columns ? attention::Left<float>{a.data(), 1, rows} : attention::Left<float>{a.data(), inner, 1};
  }
  /// Computes `at_once` rows at a time; a row more than the product has shows that nothing is written beyond it.
  std::vector<float> compute(int at_once) const {
    std::vector<float> c(static_cast<std::size_t>(rows + 1) * stride, untouched);
    for (int row = 0; row < rows; row += at_once) {
      attention::Left<float> part = left();
      part.data += row * part.row_stride;
      attention::multiply(std::min(at_once, rows - row), columns, inner, part, {b.data(), stride}, accumulate,
                          {c.data() + row * stride, stride});
    }
    return c;
  }
  double naive(int row, int column) const {
    double sum = accumulate ? untouched : 0.0;
    for (int k = 0; k < inner; ++k) {
      const attention::Left<float> of = left();
      sum += static_cast<double>(of.data[row * of.row_stride + k * of.inner_stride]) * b[k * stride + column];
    }
    return sum;
  }
};

/// Each height of a register tile sums in the order of a single row's.
TEST(AttentionRows, OfEachNumberGiveTheBitsOfOneRow) {
  for (int rows = 1; rows <= most_rows; ++rows) {
    for (const int columns : {16, 32, 48}) {
      for (const bool flag : {false, true}) {
        const LaneProduct product{rows, columns, 21, flag, !flag};
        const std::vector<float> c = product.compute(rows);
        SCOPED_TRACE(testing::Message() << rows << " x " << columns);
        ASSERT_EQ(c, product.compute(1));
        for (int row = 0; row <= rows; ++row) {
          for (int column = 0; column < product.stride; ++column) {
            const bool computed = row < rows && column < columns;
            ASSERT_NEAR(c[row * product.stride + column], computed ? product.naive(row, column) : untouched,
                        computed ? 1e-4 : 0.0);
          }
        }
      }
    }
  }
}

/// Lanes beyond the last row are zero, whichever part of a register they are in.
TEST(AttentionRows, AreTransposedAtEachNumber) {
  constexpr int head_size = 48, width = 2 * attention::square, stride = head_size + 5;
  const std::vector<float> from = normal_floats(width * stride, 3);
  for (int rows = 1; rows <= width; ++rows) {
    std::vector<float> to(head_size * attention::score_stride, untouched);
    attention::transpose<width>({from.data(), stride, head_size}, rows, to.data());
    for (int i = 0; i < head_size * width; ++i) {
      const int d = i / width, row = i % width;
      ASSERT_EQ(to[d * attention::score_stride + row], row < rows ? from[row * stride + d] : 0.0f) << rows << " rows";
    }
  }
}
#endif

}  // namespace
}  // namespace mylos
