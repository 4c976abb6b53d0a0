#include "core/kernels/attention/attention_lanes.hpp"

#include "core/device.hpp"
#include "tests/core/kernels/attention_twin.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#if !defined(MYLOS_DEVICE_BUILD)
#include "core/kernels/attention/attention_lanes_blocks.hpp"
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

/// Returns how many of the first `bytes` of scratch a pass has used on the thread that used most: it writes over a
/// pattern.
template <class Pass>
std::size_t used_scratch(std::size_t bytes, const Pass& pass) {
  using Threads = Kokkos::TeamPolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Static>>;
  constexpr unsigned char pattern = 0xa5;
  std::vector<std::size_t> used(static_cast<std::size_t>(ExecutionSpace().concurrency()));
  const auto on_threads = [&](const auto& body) {
    const Threads threads = Threads(static_cast<int>(used.size()), 1).set_scratch_size(0, Kokkos::PerTeam(bytes));
    Kokkos::parallel_for("test::scratch", threads, [&](const Threads::member_type& team) {
      body(static_cast<unsigned char*>(team.team_scratch(0).get_shmem(bytes)), team.league_rank());
    });
  };
  on_threads([&](unsigned char* scratch, int) { std::fill_n(scratch, bytes, pattern); });
  pass();
  on_threads([&](const unsigned char* scratch, int thread) {
    for (std::size_t i = 0; i < bytes; ++i) {
      if (scratch[i] != pattern) used[thread] = i + 1;
    }
  });
  return *std::max_element(used.begin(), used.end());
}

/// Sequences with several blocks of keys and of queries: the plan counts what their passes use, up to the alignment of
/// arrays and the end of a copied row.
TEST(AttentionScratch, OfLanesIsWhatAPassUses) {
  if constexpr (kernels_in_teams) GTEST_SKIP() << "This build's attention does not compute in lanes";
  constexpr std::size_t longest = 320, slack = 9 * attention::scratch_alignment;
  for (const std::size_t head_size : {32, 64}) {
    const tests::AttentionProblem<float> problem({"", 4, 2, head_size, false, 0.1f, {longest, 40, longest}});
    const TeamProcessor thread{.threads = 1, .on_host = true};
    const std::size_t forward = attention_forward_scratch<float>(problem.shape, 3, longest, thread),
                      backward = attention_backward_scratch<float>(problem.shape, 3, longest, thread);
    const std::size_t used_forward = used_scratch(forward, [&] { problem.forward(); }),
                      used_backward = used_scratch(backward, [&] { problem.backward(); });
    EXPECT_TRUE(used_forward <= forward && used_forward + slack >= forward) << used_forward << " of " << forward;
    EXPECT_TRUE(used_backward <= backward && used_backward + slack >= backward) << used_backward << " of " << backward;
  }
}
#endif

}  // namespace
}  // namespace mylos
