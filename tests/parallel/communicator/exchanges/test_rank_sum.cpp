#include "parallel/communicator/exchanges/rank_sum.hpp"

#include "tests/support/rank_values.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mylos::parallel {
namespace {

/// Returns the order of a sum: "((0+1)+(2+3))+4".
std::string order(std::size_t ranks) {
  std::vector<std::string> level;
  for (std::size_t rank = 0; rank < ranks; ++rank) level.push_back(std::to_string(rank));
  while (level.size() > 1) {
    std::vector<std::string> above;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) above.push_back("(" + level[i] + "+" + level[i + 1] + ")");
    if (level.size() % 2 == 1) above.push_back(level.back());
    level = above;
  }
  return level.front();
}

/// Evaluates such an expression in float.
float evaluate(const std::string& text, std::size_t& at, const std::vector<float>& values) {
  if (text[at] != '(') {
    std::size_t length = 0;
    const auto rank = static_cast<std::size_t>(std::stoul(text.substr(at), &length));
    at += length;
    return values[rank];
  }
  ++at;
  const float left = evaluate(text, at, values);
  ++at;
  const float right = evaluate(text, at, values);
  ++at;
  return left + right;
}

TEST(RankSum, IsABalancedTreeForAnyNumberOfRanks) {
  EXPECT_EQ(order(5), "(((0+1)+(2+3))+4)");
  for (std::size_t ranks = 1; ranks <= 33; ++ranks) {
    constexpr std::size_t count = 2500;
    std::vector<std::vector<float>> arrays(ranks, std::vector<float>(count));
    std::vector<const void*> parts;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < count; ++i) {
        arrays[rank][i] = tests::value_of_rank(rank, i);
      }
      parts.push_back(arrays[rank].data());
    }
    std::vector<float> sums(count);
    sum_over_ranks(ElementType::float32, parts, count, ElementType::float32, sums.data());
    for (const std::size_t i : {std::size_t{0}, std::size_t{1023}, std::size_t{1024}, count - 1}) {
      std::vector<float> values;
      for (const std::vector<float>& array : arrays) values.push_back(array[i]);
      std::size_t at = 0;
      EXPECT_EQ(sums[i], evaluate(order(ranks), at, values)) << ranks << " ranks, element " << i;
    }
  }
}

TEST(RankSum, MayBeWrittenOverAnyOfTheParts) {
  for (std::size_t over = 0; over < 3; ++over) {
    std::vector<std::vector<double>> arrays(3, std::vector<double>(1500, 2.0));
    const std::vector<const void*> parts{arrays[0].data(), arrays[1].data(), arrays[2].data()};
    sum_over_ranks(ElementType::float64, parts, 1500, ElementType::float64, arrays[over].data());
    for (const double value : arrays[over]) EXPECT_EQ(value, 6.0);
  }
}

TEST(RankSum, Bfloat16IsRoundedOnce) {
  // 1 + 2^-8 + 2^-8 is 1 + 2^-7 in bfloat16. Rounding after the first addition would give 1.
  std::vector<bfloat16> a{bfloat16(1.0f)}, b{bfloat16(0x1p-8f)}, c{bfloat16(0x1p-8f)};
  const std::vector<const void*> parts{a.data(), b.data(), c.data()};
  float wide = 0.0f;
  sum_over_ranks(ElementType::bfloat16, parts, 1, ElementType::float32, &wide);
  EXPECT_EQ(wide, 1.0f + 0x1p-7f);
  bfloat16 narrow;
  sum_over_ranks(ElementType::bfloat16, parts, 1, ElementType::bfloat16, &narrow);
  EXPECT_EQ(static_cast<float>(narrow), 1.0f + 0x1p-7f);
}

TEST(RankSum, BytesHaveNone) {
  const char byte = 1;
  char sum = 0;
  const std::vector<const void*> parts{&byte};
  EXPECT_THAT(tests::error_of([&] { sum_over_ranks(ElementType::byte, parts, 1, ElementType::byte, &sum); }),
              ::testing::HasSubstr("bytes have no sum"));
}

}  // namespace
}  // namespace mylos::parallel
