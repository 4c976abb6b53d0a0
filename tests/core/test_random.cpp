#include "core/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace mylos {
namespace {

void expect_words(const RandomWords& actual, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  EXPECT_EQ(actual.word[0], a);
  EXPECT_EQ(actual.word[1], b);
  EXPECT_EQ(actual.word[2], c);
  EXPECT_EQ(actual.word[3], d);
}

/// Source: kat_vectors of Random123 1.09 (Salmon et al.), philox4x32 with 10 rounds.
TEST(Philox, GivesThePublishedAnswers) {
  expect_words(philox(0, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  const std::uint64_t ones = ~std::uint64_t{0};
  expect_words(philox(ones, ones, ones), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
  expect_words(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e), 0xd16cfe09, 0x94fdcceb, 0x5001e420,
               0x24126ea1);
}

TEST(Uniform, LiesInItsRange) {
  EXPECT_EQ(uniform(0), 0.0f);
  EXPECT_EQ(uniform(0xffffffffu), 1.0f - 0x1p-24f);
  EXPECT_EQ(uniform(0x80000000u), 0.5f);
}

TEST(Normal, HasTheMomentsOfANormalDistribution) {
  const int count = 200000;
  double sum = 0.0, squares = 0.0, fourth = 0.0, within = 0.0;
  for (int i = 0; i < count; ++i) {
    const double x = normal(42, 7, static_cast<std::uint64_t>(i));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    within += std::fabs(x) < 1.0 ? 1.0 : 0.0;
  }
  EXPECT_NEAR(sum / count, 0.0, 0.01);
  EXPECT_NEAR(squares / count, 1.0, 0.015);
  EXPECT_NEAR(fourth / count, 3.0, 0.1);
  EXPECT_NEAR(within / count, 0.6827, 0.005);
}

TEST(Normal, IsAFunctionOfSeedStreamAndIndex) {
  EXPECT_EQ(normal(1, 2, 3), normal(1, 2, 3));
  EXPECT_NE(normal(1, 2, 3), normal(1, 2, 4));
  EXPECT_NE(normal(1, 2, 3), normal(1, 3, 3));
  EXPECT_NE(normal(1, 2, 3), normal(2, 2, 3));
}

TEST(UniformBelow, CoversItsRangeEvenly) {
  std::vector<int> counts(7, 0);
  for (std::uint64_t i = 0; i < 70000; ++i) ++counts.at(uniform_below(7, 3, 4, i));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);
  EXPECT_EQ(uniform_below(1, 3, 4, 5), 0u);
  const std::uint64_t large = std::uint64_t{1} << 63;
  std::set<bool> halves;
  for (std::uint64_t i = 0; i < 64; ++i) halves.insert(uniform_below(large, 3, 4, i) >= large / 2);
  EXPECT_EQ(halves.size(), 2u);
}

TEST(DropoutDraw, DependsOnEveryPartOfItsPlace) {
  const DropoutKey key{.seed = 1, .step = 2, .site = 3, .probability = 0.1f};
  const auto words = [](const DropoutDraw& draw) {
    return std::vector<std::uint32_t>(draw.words.word, draw.words.word + 4);
  };
  const auto base = words(dropout_draw(key, 4, 5, 6, 7));
  EXPECT_EQ(base, words(dropout_draw(key, 4, 5, 6, 7)));
  std::set<std::vector<std::uint32_t>> all{base};
  for (const DropoutKey& other : {DropoutKey{9, 2, 3, 0.1f}, DropoutKey{1, 9, 3, 0.1f}, DropoutKey{1, 2, 9, 0.1f}}) {
    all.insert(words(dropout_draw(other, 4, 5, 6, 7)));
  }
  all.insert(words(dropout_draw(key, 9, 5, 6, 7)));
  all.insert(words(dropout_draw(key, 4, 9, 6, 7)));
  all.insert(words(dropout_draw(key, 4, 5, 9, 7)));
  all.insert(words(dropout_draw(key, 4, 5, 6, 9)));
  EXPECT_EQ(all.size(), 8u);
}

TEST(DropoutDraw, CutsWordsIntoEightDraws) {
  const DropoutDraw draw{{{0x00020001u, 0x00040003u, 0x00060005u, 0xffff0007u}}};
  for (unsigned i = 0; i < 7; ++i) EXPECT_EQ(draw[i], i + 1);
  EXPECT_EQ(draw[7], 0xffffu);
}

TEST(DropoutKey, KeepsTheExpectedValue) {
  const DropoutKey off{.seed = 1, .step = 1, .site = 1, .probability = 0.0f};
  EXPECT_FALSE(off.active());
  EXPECT_EQ(off.scale(), 1.0f);
  for (const float probability : {0.1f, 0.5f, 0.9f}) {
    const DropoutKey key{.seed = 1, .step = 1, .site = 1, .probability = probability};
    EXPECT_TRUE(key.active());
    int dropped = 0;
    for (std::uint32_t row = 0; row < 1000; ++row) {
      for (std::uint32_t group = 0; group < 10; ++group) {
        const DropoutDraw draw = dropout_draw(key, 0, row, 0, group);
        for (unsigned i = 0; i < dropout_group; ++i) dropped += draw[i] < key.threshold() ? 1 : 0;
      }
    }
    EXPECT_NEAR(dropped / 80000.0, probability, 0.006);
    EXPECT_NEAR(key.scale() * (1.0 - key.threshold() / 65536.0), 1.0, 1e-4);
  }
}

}  // namespace
}  // namespace mylos
