#include "core/base/median.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace mylos {
namespace {

TEST(Median, IsTheMiddleOrTheLowerOfTheTwoInTheMiddle) {
  EXPECT_EQ(median({3.0}), 3.0);
  EXPECT_EQ(median({9.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(median({4.0, 1.0, 9.0, 2.0}), 2.0);
}

TEST(Median, OfNothingIsAnError) { EXPECT_THROW(median({}), std::invalid_argument); }

}  // namespace
}  // namespace mylos
