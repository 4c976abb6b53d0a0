#include "core/kernels/attention/attention.hpp"

#include "core/kernels/attention/attention_bfloat16.hpp"
#include "core/kernels/attention/attention_blocks.hpp"
#include "tests/core/kernels/attention_twin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mylos {
namespace {

using testing::HasSubstr;

using tests::AttentionCase;
using tests::AttentionProblem;
using tests::compare_with_naive;
using tests::to_host;

const std::vector<AttentionCase> attention_cases = {
    {"Plain", 2, 2, 32, false, 0.0f, {7, 40, 1, 33}},
    {"OddHeads", 3, 3, 20, false, 0.0f, {5, 64, 31}},
    {"OneSequence", 1, 1, 64, false, 0.0f, {96}},
    {"OneRow", 4, 4, 16, false, 0.0f, {1}},
    {"OneRowCausalDropout", 2, 2, 5, true, 0.5f, {1}},
    {"EightySequences", 2, 2, 8, false, 0.0f, std::vector<std::size_t>(80, 9)},
    {"Long", 1, 1, 32, false, 0.0f, {384, 257}},
    {"LongerThanTwoBlocks", 1, 1, 24, false, 0.1f, {531}},
    {"Causal", 2, 2, 32, true, 0.0f, {1, 70, 32, 300}},
    {"CausalOddDropout", 3, 3, 20, true, 0.2f, {33, 280, 2}},
    {"Grouped", 6, 2, 16, false, 0.0f, {50, 17}},
    {"GroupedCausalDropout", 4, 1, 40, true, 0.1f, {50, 17, 130}},
    {"Dropout", 2, 2, 32, false, 0.1f, {8, 100, 61, 385}},
    {"LargeHead", 1, 1, 130, false, 0.3f, {45}},
    {"Tiles", 2, 2, 16, false, 0.0f, {769, 40, 513}},
    {"CausalGroupedTiles", 4, 2, 20, true, 0.0f, {520, 300, 1030}},
    {"GroupedTilesDropout", 3, 1, 8, false, 0.2f, {256, 600}},
    {"CausalGroupedTilesInLanes", 2, 1, 32, true, 0.1f, {279, 600}},
    {"GroupedTilesInLanes", 4, 2, 48, false, 0.1f, {23, 530}},
    {"WindowOfOne", 2, 2, 32, true, 0.0f, {1, 70, 300}, 1},
    {"WindowOfOneOfManyTiles", 2, 1, 20, true, 0.0f, {600, 3}, 1},
    {"OddWindowDropout", 3, 3, 20, true, 0.2f, {33, 280, 2}, 7},
    {"OddWindowInLanes", 4, 2, 16, true, 0.2f, {33, 280, 2, 600}, 7},
    {"WindowOfBlocks", 2, 1, 32, true, 0.0f, {31, 32, 33, 64, 513, 256}, 32},
    {"WindowOverBlockEdges", 2, 2, 24, true, 0.1f, {257, 511, 65}, 33},
    {"WindowOfATile", 4, 2, 20, true, 0.1f, {520, 300, 1030}, 256},
    {"WindowOfATileInLanes", 2, 1, 32, true, 0.1f, {279, 1030}, 257},
    {"WindowOfTwoTilesInLanes", 2, 2, 16, true, 0.0f, {1300}, 600},
    {"WindowOfTheLength", 2, 1, 16, true, 0.0f, {300, 299, 301}, 300},
    {"WindowOfHeadsOf52", 2, 1, 52, true, 0.0f, {600}, 7},
};

class Attention : public testing::TestWithParam<AttentionCase> {};

TEST_P(Attention, EqualsNaiveTwinInFloat) { compare_with_naive<float>(GetParam()); }
TEST_P(Attention, EqualsNaiveTwinInBfloat16) { compare_with_naive<bfloat16>(GetParam()); }
TEST_P(Attention, EqualsNaiveTwinInHalf) { compare_with_naive<half>(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Shapes, Attention, testing::ValuesIn(attention_cases),
                         [](const testing::TestParamInfo<AttentionCase>& info) { return info.param.name; });

/// Each CPU uses one kind of operands. This test also runs those that it supports and other CPUs use.
TEST(AttentionOperands, OfEveryKindEqualNaiveTwin) {
  const AttentionCase grouped{"", 4, 2, 20, true, 0.1f, {520, 33, 1}}, plain{"", 2, 2, 32, false, 0.0f, {7, 100}};
  std::set<std::vector<double>> outputs, gradients;
  for (const attention::Bfloat16Operands operands : attention::supported_bfloat16_operands()) {
    SCOPED_TRACE(attention::to_string(operands));
    const attention::ScopedBfloat16Operands scope(operands);
    for (const AttentionCase& c : {grouped, plain}) compare_with_naive<bfloat16>(c);
    const AttentionProblem<bfloat16> problem(plain);
    problem.forward();
    problem.backward();
    EXPECT_TRUE(outputs.insert(to_host(problem.out)).second) << "not used by the forward pass";
    EXPECT_TRUE(gradients.insert(to_host(problem.dqkv)).second) << "not used by the backward pass";
  }
}

/// Returns rows [begin, end) of a matrix on the host.
template <class T>
std::vector<double> rows_of(const Matrix<T>& matrix, std::size_t begin, std::size_t end) {
  return to_host(Matrix<T>(Kokkos::subview(matrix, Kokkos::make_pair(begin, end), Kokkos::ALL)));
}

template <class T>
void expect_the_same_bits_alone(std::size_t head_size) {
  for (const bool causal : {false, true}) {
    const AttentionCase packed{"", 3, 1, head_size, causal, 0.1f, {40, 77, 300, 1}};
    const AttentionProblem<T> together(packed);
    together.forward();
    together.backward();
    for (std::size_t s = 0; s < packed.lengths.size(); ++s) {
      AttentionCase single = packed;
      single.lengths = {packed.lengths[s]};
      AttentionProblem<T> alone(single);
      alone.ids = {together.ids[s]};
      alone.pack();
      const auto rows = Kokkos::make_pair(together.starts[s], together.starts[s + 1]);
      Kokkos::deep_copy(alone.qkv, Kokkos::subview(together.qkv, rows, Kokkos::ALL));
      Kokkos::deep_copy(alone.dout, Kokkos::subview(together.dout, rows, Kokkos::ALL));
      alone.forward();
      alone.backward();
      EXPECT_EQ(to_host(alone.out), rows_of(together.out, rows.first, rows.second)) << "sequence " << s;
      EXPECT_EQ(to_host(alone.dqkv), rows_of(together.dqkv, rows.first, rows.second)) << "sequence " << s;
    }
  }
}

TEST(AttentionPacking, SequenceAloneGivesTheSameBits) {
  expect_the_same_bits_alone<float>(20);
  expect_the_same_bits_alone<float>(32);
  expect_the_same_bits_alone<bfloat16>(20);
}

/// Without an array for sums between tiles, a sequence in bfloat16 or half is a single tile.
template <class T>
void expect_the_bits_of_one_tile(const AttentionCase& c) {
  const AttentionProblem<T> problem(c);
  problem.forward();
  problem.backward();
  const auto whole = to_host(problem.dqkv);
  Kokkos::deep_copy(problem.dqkv, T(7.0f));
  const Matrix<float> sums("sums", problem.dqkv.extent(0), problem.dqkv.extent(1));
  Kokkos::deep_copy(sums, 7.0f);
  attention_backward<T>(ExecutionSpace(), problem.shape, problem.sequences, problem.dropout, problem.qkv, problem.out,
                        problem.log_sum_exp, problem.dout, problem.dqkv, problem.row_sums, sums);
  EXPECT_EQ(to_host(problem.dqkv), whole);
  EXPECT_NE(to_host(Matrix<float>(Kokkos::subview(sums, Kokkos::make_pair(40, 41), Kokkos::ALL))),
            std::vector<double>(sums.extent(1), 7.0))
      << "no tile has passed a sum on";
}

TEST(AttentionTiles, GiveTheBitsOfOneTile) {
  for (const bool causal : {false, true}) {
    const AttentionCase c{"", 4, 2, 20, causal, 0.1f, {40, 1030, 513, 300}};
    expect_the_bits_of_one_tile<bfloat16>(c);
    expect_the_bits_of_one_tile<half>(c);
  }
}

/// In a causal sequence, later rows with zero gradient do not affect the first rows, which have the same bits as in the
/// shorter sequence, a single tile.
void expect_the_bits_of_a_shorter_sequence(std::size_t head_size) {
  constexpr std::size_t beginning = longest_attention_tile;
  const AttentionProblem<float> longer({"", 2, 1, head_size, true, 0.1f, {beginning + 300}}),
      shorter({"", 2, 1, head_size, true, 0.1f, {beginning}});
  const auto first = [](const auto& matrix) {
    return Kokkos::subview(matrix, Kokkos::make_pair(std::size_t{0}, beginning), Kokkos::ALL);
  };
  const auto rest = Kokkos::make_pair(beginning, beginning + 300);
  Kokkos::deep_copy(shorter.qkv, first(longer.qkv));
  Kokkos::deep_copy(shorter.dout, first(longer.dout));
  Kokkos::deep_copy(Kokkos::subview(longer.dout, rest, Kokkos::ALL), 0.0f);
  for (const AttentionProblem<float>* problem : {&longer, &shorter}) {
    problem->forward();
    problem->backward();
  }
  EXPECT_EQ(rows_of(longer.out, 0, beginning), to_host(shorter.out));
  EXPECT_EQ(rows_of(longer.dqkv, 0, beginning), to_host(shorter.dqkv));
}

TEST(AttentionTiles, BeginningOfACausalSequenceHasTheBitsOfAShorterOne) {
  for (const std::size_t head_size : {24, 48}) expect_the_bits_of_a_shorter_sequence(head_size);
}

template <class T>
void expect_that_a_long_window_costs_nothing(std::size_t head_size) {
  const AttentionCase c{"", 2, 1, head_size, true, 0.1f, {77, 600}};
  AttentionCase windowed = c;
  windowed.window = 600;
  const AttentionProblem<T> without(c), with(windowed);
  for (const AttentionProblem<T>* problem : {&without, &with}) {
    problem->forward();
    problem->backward();
  }
  tests::expect_equal_bits(without, with);
}

/// A block may hide all its keys from a row. Compilers contract the product and the sum of the exponent or do not.
TEST(AttentionWindow, AMaskedScoreLessTheMaximumOfMaskedScoresIsZero) {
  for (int head_size = 2; head_size <= 256; head_size += 2) {
    const float scale = 1.44269504f / std::sqrt(static_cast<float>(head_size));
    EXPECT_EQ(std::fma(hidden_score, scale, -(hidden_score * scale)), 0.0f) << head_size;
  }
}

TEST(AttentionWindow, OfTheLengthOrMoreChangesNoBit) {
  expect_that_a_long_window_costs_nothing<float>(20);
  expect_that_a_long_window_costs_nothing<float>(32);
  expect_that_a_long_window_costs_nothing<bfloat16>(32);
  expect_that_a_long_window_costs_nothing<half>(20);
}

/// Keys beyond a block's edge before the window are not read: what is not a number there reaches no later row.
template <class T>
void expect_that_other_blocks_are_not_read(std::size_t head_size) {
  constexpr std::size_t length = 700, poisoned = 256, window = 40, first_clean = poisoned + window + 32;
  const AttentionProblem<T> problem({"", 2, 1, head_size, true, 0.0f, {length}, window});
  const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), problem.qkv);
  for (std::size_t row = 0; row < poisoned; ++row) {
    for (std::size_t column = 0; column < host.extent(1); ++column) host(row, column) = T(std::nanf(""));
  }
  Kokkos::deep_copy(problem.qkv, host);
  problem.forward();
  problem.backward();
  for (const auto& [name, results] : {std::pair("out", rows_of(problem.out, first_clean, length)),
                                      std::pair("dqkv", rows_of(problem.dqkv, first_clean, length))}) {
    const auto found = std::ranges::find_if_not(results, [](double x) { return std::isfinite(x); });
    EXPECT_EQ(found - results.begin(), std::ssize(results)) << name << " of heads of " << head_size;
  }
  EXPECT_FALSE(std::isfinite(rows_of(problem.out, poisoned, poisoned + 1).front()));
}

TEST(AttentionWindow, BlocksOutsideAreSkipped) {
  expect_that_other_blocks_are_not_read<float>(20);
  expect_that_other_blocks_are_not_read<float>(32);
  expect_that_other_blocks_are_not_read<bfloat16>(20);
}

TEST(AttentionTiles, PartialSumsOfAnotherShapeAreRefused) {
  const AttentionProblem<half> p({"", 2, 2, 8, false, 0.0f, {5, 3}});
  try {
    attention_backward<half>(ExecutionSpace(), p.shape, p.sequences, p.dropout, p.qkv, p.out, p.log_sum_exp, p.dout,
                             p.dqkv, p.row_sums, Matrix<float>("", 8, 47));
    FAIL() << "no error";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("partial sums are 8 x 47, the gradient 8 x 48"));
  }
}

TEST(AttentionDropout, DependsOnSampleStepSiteAndHead) {
  const AttentionCase c{"", 2, 2, 16, false, 0.3f, {48}};
  const auto outcome = [&](const std::function<void(AttentionProblem<float>&)>& change) {
    AttentionProblem<float> problem(c);
    change(problem);
    problem.forward();
    return to_host(problem.out);
  };
  const auto plain = outcome([](AttentionProblem<float>&) {});
  EXPECT_NE(plain, outcome([](AttentionProblem<float>& p) { p.dropout.seed += 1; }));
  EXPECT_NE(plain, outcome([](AttentionProblem<float>& p) { p.dropout.step += 1; }));
  EXPECT_NE(plain, outcome([](AttentionProblem<float>& p) { p.dropout.site += 1; }));
  EXPECT_NE(plain, outcome([](AttentionProblem<float>& p) {
              p.ids[0] += 1;
              p.pack();
            }));
  EXPECT_NE(plain, outcome([](AttentionProblem<float>& p) { p.dropout.probability = 0.0f; }));
}

/// Heads with equal queries, keys and values differ only in their dropout.
TEST(AttentionDropout, VariesTheHead) {
  constexpr std::size_t size = 16;
  for (const float probability : {0.0f, 0.3f}) {
    const AttentionProblem<float> problem({"", 2, 2, size, false, probability, {48}});
    const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), problem.qkv);
    for (std::size_t row = 0; row < host.extent(0); ++row) {
      for (std::size_t column = size; column < 6 * size; column += 2 * size) {
        for (std::size_t d = 0; d < size; ++d) host(row, column + d) = host(row, column - size + d);
      }
    }
    Kokkos::deep_copy(problem.qkv, host);
    problem.forward();
    const auto out = Kokkos::create_mirror_view_and_copy(HostSpace(), problem.out);
    std::size_t differing = 0;
    for (std::size_t i = 0; i < out.extent(0) * size; ++i) {
      differing += out(i / size, i % size) != out(i / size, size + i % size) ? 1 : 0;
    }
    EXPECT_EQ(differing, probability > 0.0f ? 48 * size : 0);
  }
}

/// Compares with central differences of sum(out * dout), a random projection, for every element of qkv.
TEST(AttentionJacobian, BackwardIsTheDerivativeOfForward) {
  for (const AttentionCase& c :
       {AttentionCase{"", 2, 2, 4, false, 0.0f, {5, 3}}, AttentionCase{"", 4, 2, 5, true, 0.25f, {6, 9}},
        AttentionCase{"", 2, 1, 16, true, 0.25f, {5, 3}}}) {
    const AttentionProblem<float> problem(c);
    problem.forward();
    problem.backward();
    const auto qkv = Kokkos::create_mirror_view(problem.qkv);  // may be the same memory
    const auto dout = to_host(problem.dout), dqkv = to_host(problem.dqkv);
    const auto projection = [&](std::size_t element, float value) {
      const float before = std::exchange(qkv.data()[element], value);
      Kokkos::deep_copy(problem.qkv, qkv);
      problem.forward();
      qkv.data()[element] = before;
      const auto out = to_host(problem.out);
      return std::inner_product(out.begin(), out.end(), dout.begin(), 0.0);
    };
    Kokkos::deep_copy(qkv, problem.qkv);
    for (std::size_t i = 0; i < qkv.size(); ++i) {
      const float x = qkv.data()[i], above = x + 0.01f, below = x - 0.01f;
      const double slope = (projection(i, above) - projection(i, below)) / (static_cast<double>(above) - below);
      ASSERT_NEAR(dqkv[i], slope, 2e-3) << c.heads << " heads, element " << i;
    }
  }
}

TEST(AttentionRange, LargeScoresDoNotOverflow) {
  const AttentionProblem<float> problem({"", 1, 1, 16, false, 0.0f, {300}});
  Kokkos::deep_copy(problem.qkv, 0.0f);
  const auto host = Kokkos::create_mirror_view(problem.qkv);
  for (std::size_t row = 0; row < 300; ++row) {
    for (std::size_t d = 0; d < 16; ++d) {
      host(row, d) = 100.0f;
      host(row, 16 + d) = static_cast<float>(row);  // the last key, in the second block, outweighs all others
      host(row, 32 + d) = static_cast<float>(row);
    }
  }
  Kokkos::deep_copy(problem.qkv, host);
  problem.forward();
  for (const double x : to_host(problem.out)) ASSERT_EQ(x, 299.0);
  problem.backward();
  // Every probability is 0 or 1, so the gradients of all scores vanish, and the last value receives all of dout. As
  // powers of 2, scores of 10^5 are rounded to 2^-6, and so are the probabilities recomputed from them.
  const auto dout = to_host(problem.dout), dqkv = to_host(problem.dqkv);
  for (std::size_t i = 0; i < dqkv.size(); ++i) {
    const std::size_t row = i / 48, column = i % 48;
    double expected = 0.0;
    for (std::size_t j = column; row == 299 && column >= 32 && j < 32 + dout.size(); j += 16) expected += dout[j - 32];
    const double rounding = column < 32 ? 4.0 : 0x1p-6 * std::fabs(expected) + 1e-6;
    ASSERT_NEAR(dqkv[i], expected, rounding) << "row " << row << ", column " << column;
  }
}

TEST(AttentionErrors, ShapesThatDoNotFitAreRefused) {
  const auto message = [](const std::function<void(AttentionProblem<float>&)>& change, bool backward) -> std::string {
    AttentionProblem<float> problem({"", 4, 2, 8, false, 0.0f, {5, 3}});
    change(problem);
    try {
      backward ? problem.backward() : problem.forward();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  for (const bool backward : {false, true}) {
    EXPECT_THAT(message([](auto& p) { p.shape.key_value_heads = 3; }, backward),
                HasSubstr("4 heads are not a multiple of 3 key-value heads"));
    EXPECT_THAT(message([](auto& p) { p.shape.key_value_heads = 0; }, backward), HasSubstr("0 key-value heads"));
    EXPECT_THAT(message([](auto& p) { p.shape.head_size = 9; }, backward),
                HasSubstr("qkv has 64 columns, (4 + 2 * 2) heads of 9 need 72"));
    EXPECT_THAT(message([](auto& p) { p.out = p.dout = Matrix<float>("", 8, 31); }, backward),
                HasSubstr("out has 31 columns, 4 heads of 8 need 32"));
    EXPECT_THAT(message([](auto& p) { p.sequences.sample_ids = Vector<std::uint32_t>("", 3); }, backward),
                HasSubstr("3 sequence starts for 3 samples, not 4"));
    EXPECT_THAT(message([](auto& p) { p.shape.window = 3; }, backward),
                HasSubstr("a window of 3 rows without a causal mask"));
    EXPECT_THAT(message([](auto& p) { p.shape.causal = true, p.shape.window = 0; }, backward),
                HasSubstr("a window of 0 rows with a causal mask; it needs a row or more"));
    EXPECT_THAT(message([](auto& p) { p.sequences.longest = 9; }, backward),
                HasSubstr("the longest sequence has 9 rows, the batch 8"));
  }
}

TEST(AttentionScratch, IsThatOfTheTeamsADeviceRunsAtOnce) {
  const AttentionShape shape{.heads = 12, .key_value_heads = 12, .head_size = 64};
  constexpr std::size_t array = 384 * 64 * sizeof(float);
  const auto device = [](std::size_t threads) { return TeamProcessor{.threads = threads, .on_host = false}; };
  const TeamProcessor plenty = device(1 << 30);
  const std::size_t forward = attention_forward_scratch(shape, 1, 384, plenty),
                    backward = attention_backward_scratch(shape, 1, 384, plenty);
  // A team holds the keys and values of its sequence; in the backward pass it holds both transposed, and their
  // gradients.
  EXPECT_GE(forward, 12 * 2 * array);
  EXPECT_GE(backward, 12 * 5 * array);
  EXPECT_LE(backward, 12 * 8 * array) << "with what may not be in fast memory";
  EXPECT_EQ(attention_backward_scratch(shape, 3, 384, plenty), 3 * backward);
  EXPECT_EQ(attention_backward_scratch(shape, 3, 384, device(128 * 10)), backward * 10 / 12) << "10 teams at once";
  EXPECT_EQ(attention_backward_scratch(shape, 0, 0, plenty), 0u);
  EXPECT_GT(attention_backward_scratch(shape, 1, 385, plenty), backward);
}

TEST(AttentionScratch, OfLongSequencesIsThatOfTheirTiles) {
  const AttentionShape shape{.heads = 2, .key_value_heads = 1, .head_size = 64};
  const TeamProcessor host{.threads = 4, .on_host = true};
  const std::size_t longest = longest_attention_tile;
  EXPECT_LT(attention_forward_scratch(shape, 1, 100 * longest, host),
            attention_forward_scratch(shape, 1, longest, host));
  EXPECT_LT(attention_backward_scratch(shape, 1, 100 * longest, host),
            attention_backward_scratch(shape, 1, longest, host));
  EXPECT_GT(attention_backward_scratch(shape, 1, 100 * longest, host, false),
            50 * attention_backward_scratch(shape, 1, longest, host));
}

TEST(AttentionScratch, OfFloatsIsThatOfLanesOnAHost) {
  if constexpr (kernels_in_teams) GTEST_SKIP() << "This build's attention does not compute in lanes";
  const TeamProcessor host{.threads = 4, .on_host = true}, device{.threads = 128, .on_host = false};
  const AttentionShape shape{.heads = 12, .key_value_heads = 12, .head_size = 64}, odd{12, 12, 40};
  // For 32 queries: the queries and a block of 256 keys' scores. The backward pass has both twice, and queries and
  // their gradients once more. Both hold copies of a block's keys and values.
  constexpr std::size_t copies = 2 * 256 * 64;
  EXPECT_GE(attention_forward_scratch<float>(shape, 1, 384, host), 4 * sizeof(float) * (32 * (64 + 256) + copies));
  EXPECT_GE(attention_backward_scratch<float>(shape, 1, 384, host),
            4 * sizeof(float) * (32 * (4 * 64 + 2 * 256) + copies));
  EXPECT_LT(2 * attention_backward_scratch<float>(shape, 1, 384, host),
            attention_backward_scratch(shape, 1, 384, host));
  EXPECT_EQ(attention_backward_scratch<float>(shape, 0, 0, host), 0u);
  EXPECT_EQ(attention_forward_scratch<float>(odd, 1, 384, host), attention_forward_scratch(odd, 1, 384, host));
  EXPECT_EQ(attention_forward_scratch<float>(shape, 1, 384, device), attention_forward_scratch(shape, 1, 384, device));
}

TEST(AttentionScratch, IsNotCountedForTeamsThatAnH100DoesNotRun) {
  constexpr std::size_t teams = 2112, samples = 1024;  // 12,288 heads
  const TeamProcessor h100{.threads = 132 * 2048, .on_host = false};
  const AttentionShape shape{.heads = 12, .key_value_heads = 12, .head_size = 64};
  const AttentionShape one{.heads = 1, .key_value_heads = 1, .head_size = 64};
  EXPECT_EQ(attention_forward_scratch(shape, samples, 384, h100), teams * attention_forward_scratch(one, 1, 384, h100));
  EXPECT_EQ(attention_backward_scratch(shape, samples, 384, h100),
            teams * attention_backward_scratch(one, 1, 384, h100));
}

/// Returns the memory that a device allocates for a launch, for as many teams as run at once (Kokkos' ParallelFor for
/// CUDA).
std::size_t taken_by_kokkos(const attention::Policy& policy) {
  const int teams = std::min(policy.space().concurrency() / policy.team_size(), policy.league_size());
  return static_cast<std::size_t>(teams) * policy.scratch_size(1, policy.team_size());
}

TEST(AttentionScratch, IsWhatALaunchTakes) {
  if constexpr (!kernels_in_teams) GTEST_SKIP() << "This build's attention does not run in teams of a device";
  struct Sizes {
    std::size_t large_bytes, fast_bytes;
    int fast_level = 0;
    std::size_t large() const { return large_bytes; }
    std::size_t fast() const { return fast_bytes; }
  };
  const ExecutionSpace space;
  const auto threads = static_cast<std::size_t>(space.concurrency());
  for (const std::size_t fast : {std::size_t{1} << 10, 2 * attention::fast_memory}) {
    for (const std::size_t league : {1u, 7u, 100u, 5000u}) {
      Sizes sizes{.large_bytes = 9 << 10, .fast_bytes = fast};
      const std::size_t counted = attention::all_large_bytes_on_device(sizes, league, threads);
      attention::Policy policy = attention::make_policy(space, league);
      attention::set_scratch(policy, sizes);
      EXPECT_EQ(taken_by_kokkos(policy), counted) << league << " teams, " << fast << " bytes of fast memory";
    }
  }
}

TEST(AttentionScratch, IsThatOfAHostsThreads) {
  const AttentionShape shape{.heads = 12, .key_value_heads = 12, .head_size = 64};
  const auto bytes = [&](std::size_t samples, std::size_t threads) {
    return attention_backward_scratch(shape, samples, 384, {.threads = threads, .on_host = true});
  };
  EXPECT_GE(bytes(8, 1), 5 * 384 * 64 * sizeof(float));
  EXPECT_EQ(bytes(8, 16), 16 * bytes(8, 1));
  EXPECT_EQ(bytes(1, 16), 16 * bytes(8, 1)) << "Kokkos gives every thread its part";
  EXPECT_EQ(bytes(0, 16), 0u);
}

TEST(AttentionScratch, GrowsWhereHeadsDoNotFitFastMemory) {
  const auto of_head = [](std::size_t size) {
    return attention_backward_scratch({.heads = 1, .key_value_heads = 1, .head_size = size}, 1, 32,
                                      {.threads = 1 << 20, .on_host = false});
  };
  EXPECT_GT(of_head(512), 8 * of_head(64));
}

}  // namespace
}  // namespace mylos
