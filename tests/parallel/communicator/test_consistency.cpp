#include "parallel/communicator/consistency.hpp"

#include "tests/support/launch.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace mylos::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Returns the error of comparing `values`, if the last rank has `other`.
std::string compare(const std::vector<NamedValue>& values, const std::vector<NamedValue>& other) {
  Communicator& world = tests::launch().world();
  const bool last = world.rank() + 1 == world.size();
  return tests::error_of([&] { expect_equal_on_all_ranks(world, last ? other : values); });
}

bool alone() { return tests::launch().world().size() == 1; }
std::string last_rank() { return "rank " + std::to_string(tests::launch().world().size() - 1); }

TEST(Consistency, EqualValuesPass) {
  const std::vector<NamedValue> values{
      {"build", "0.1.0 (1a2b)"}, {"training data", "crc 77"}, {"", ""}, {"a b", " 1 "}};
  EXPECT_EQ(compare(values, values), "(nothing was thrown)");
  EXPECT_EQ(compare({}, {}), "(nothing was thrown)");
}

TEST(Consistency, ADifferenceNamesTheRankAndBothValues) {
  if (alone()) GTEST_SKIP() << "One rank differs from none";
  const std::vector<NamedValue> values{{"build", "0.1.0"}, {"training data", "crc 77"}, {"seed", "42"}};
  const std::vector<NamedValue> other{{"build", "0.1.0"}, {"training data", "crc 78"}, {"seed", "43"}};
  EXPECT_THAT(compare(values, other),
              AllOf(HasSubstr(last_rank() + ": training data is \"crc 78\", on rank 0 it is \"crc 77\""),
                    Not(HasSubstr("seed"))));
}

TEST(Consistency, OfALongValueThePlaceThatDiffersIsShown) {
  if (alone()) GTEST_SKIP() << "One rank differs from none";
  const std::string before(1000, 'x'), after(1000, 'y');
  const std::string error = compare({{"configuration", before + "\"steps\": 31" + after}},
                                    {{"configuration", before + "\"steps\": 32" + after}});
  EXPECT_THAT(error, AllOf(HasSubstr("steps\": 32yyy"), HasSubstr("steps\": 31yyy"), HasSubstr("...")));
  EXPECT_LT(error.size(), 400u);
}

TEST(Consistency, OtherNamesOrNumbersOfValuesAreDifferences) {
  if (alone()) GTEST_SKIP() << "One rank differs from none";
  EXPECT_THAT(compare({{"a", "1"}}, {{"b", "1"}}), HasSubstr("gives \"b\" where rank 0 gives \"a\""));
  EXPECT_THAT(compare({{"a", "1"}}, {{"a", "1"}, {"b", "1"}}), HasSubstr("gives 2 values where rank 0 gives 1"));
}

}  // namespace
}  // namespace mylos::parallel
