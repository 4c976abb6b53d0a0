#include "parallel/sharding/exact_sum.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/launch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace mylos::parallel {
namespace {

using Limits = std::numeric_limits<double>;

double exact_sum(Communicator& ranks, const std::vector<double>& values) {
  const ExecutionSpace space;
  const ExactSum add(ranks);
  const Vector<double> own("test::values", values.size()), sum("test::sum", 1);
  const auto host = Kokkos::create_mirror_view(own);
  std::ranges::copy(values, host.data());
  Kokkos::deep_copy(own, host);
  double total = 0.0;
  for (int turn = 0; turn < 2; ++turn) {  // the second one must not find the first one's sum
    add(space, own, sum, "test");
    total = tests::host_values(sum)[0];
  }
  return total;
}

double sum_alone(const std::vector<double>& values) { return exact_sum(*make_self_communicator(), values); }

/// Returns values of which most other orders of summation would change the last bits.
std::vector<double> uneven_values(std::size_t count) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(std::exp2(static_cast<double>(i * 37 % 80) - 40.0) / 3.0 + 1.0 / static_cast<double>(7 + i));
  }
  return values;
}

/// Returns the consecutive values of a rank; the last ranks may have fewer or none.
std::vector<double> values_of(const std::vector<double>& all, std::size_t rank, std::size_t ranks) {
  const std::size_t part = (all.size() + ranks - 1) / ranks;
  const auto at = [&](std::size_t index) {
    return all.begin() + static_cast<std::ptrdiff_t>(std::min(index, all.size()));
  };
  return {at(rank * part), at((rank + 1) * part)};
}

TEST(ExactSum, HasTheSameBitsOnAnyNumberOfRanksAndInAnyOrder) {
  Communicator& ranks = tests::launch().world();
  for (const std::size_t count : {0u, 1u, 2u, 1001u, 20000u}) {
    std::vector<double> values = uneven_values(count);
    const double alone = sum_alone(values);
    EXPECT_EQ(exact_sum(ranks, values_of(values, ranks.rank(), ranks.size())), alone);
    double in_order = 0.0;
    for (const double value : values) in_order += value;
    EXPECT_NEAR(alone, in_order, 1e-12 * in_order);
    if (count > 1000) {
      EXPECT_NE(alone, in_order) << "the test would not notice sums that round";
    }
    std::ranges::reverse(values);
    EXPECT_EQ(sum_alone(values), alone);
    std::ranges::sort(values);
    EXPECT_EQ(sum_alone(values), alone);
  }
}

TEST(ExactSum, LosesNoBit) {
  const double tiny = Limits::denorm_min(), least = Limits::min(), most = Limits::max();
  for (const double value : {0.0, tiny, 5 * tiny, least - tiny, least, 1.0 / 3.0, 1.0, 0x1.fffffffffffffp+31, most}) {
    EXPECT_EQ(sum_alone({value}), value) << value;
    EXPECT_EQ(sum_alone({0.0, value, 0.0}), value) << value;
  }
  EXPECT_EQ(sum_alone({least - tiny, tiny}), least);
  // As double, 1 + 2^-53 is 1.
  EXPECT_EQ(sum_alone({1.0, 0x1p-53, 0x1p-53}), 1.0 + 0x1p-52);
  EXPECT_EQ(sum_alone({0x1p-53, 0x1p+970, 0x1p-53}), 0x1p+970);
  // Carries pass through many limbs.
  EXPECT_EQ(sum_alone(std::vector<double>(std::size_t{1} << 20, most / 0x1p+20)), most);
  EXPECT_EQ(sum_alone({most, most}), Limits::infinity());
}

TEST(ExactSum, IsNotFiniteIfAValueOfAnyRankIsNot) {
  Communicator& ranks = tests::launch().world();
  for (std::size_t owner = 0; owner < ranks.size(); ++owner) {
    const auto with = [&](double value) {
      std::vector<double> values{1.0, 2.0};
      if (ranks.rank() == owner) values.push_back(value);
      return exact_sum(ranks, values);
    };
    EXPECT_EQ(with(Limits::infinity()), Limits::infinity());
    EXPECT_TRUE(std::isnan(with(Limits::quiet_NaN())));
  }
}

/// The sums of subtrees, which a sum in a fixed order needs, would take bytes that grow with the number of values.
TEST(ExactSum, SendsTheSameForAnyNumberOfValues) {
  Communicator& ranks = tests::launch().world();
  const auto sent_for = [&](std::size_t count) {
    const Traffic before = traffic();
    exact_sum(ranks, uneven_values(count));
    return traffic() - before;
  };
  const Traffic none = sent_for(0), many = sent_for(20000);
  EXPECT_EQ(many, none);
  EXPECT_LE(many.bytes, 2 * ExactSum::bytes * (ranks.size() - 1));
}

}  // namespace
}  // namespace mylos::parallel
