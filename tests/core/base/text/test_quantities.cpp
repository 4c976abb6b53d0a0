#include "core/base/text/quantities.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace mylos {
namespace {

TEST(Quantities, DurationsGrowFromMinutesToDays) {
  EXPECT_EQ(duration_text(0.0), "0:00");
  EXPECT_EQ(duration_text(7.4), "0:07");
  EXPECT_EQ(duration_text(59.6), "1:00");
  EXPECT_EQ(duration_text(725.0), "12:05");
  EXPECT_EQ(duration_text(3 * 3600.0 + 4 * 60.0 + 5.0), "3:04:05");
  EXPECT_EQ(duration_text(2 * 86400.0 + 3600.0), "2-01:00:00");
}

TEST(Quantities, DurationsThatAreNoneAreAQuestionMark) {
  EXPECT_EQ(duration_text(-1.0), "?");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::quiet_NaN()), "?");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "?");
}

TEST(Quantities, BytesTakeTheUnitThatFits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text((1u << 20) - 1), "1.00 MiB");
  EXPECT_EQ(bytes_text(std::size_t{1} << 30), "1.00 GiB");
  EXPECT_EQ(bytes_text(std::size_t{1} << 62), "4.00 EiB");
}

TEST(Quantities, ShapesAreListsInBrackets) {
  EXPECT_EQ(shape_text(std::vector<std::size_t>{2, 384}), "(2, 384)");
  EXPECT_EQ(shape_text({}), "()");
}

TEST(Quantities, CountsAreGroupedByThousands) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_of(1, "window"), "1 window");
  EXPECT_EQ(count_of(2000, "window"), "2,000 windows");
}

}  // namespace
}  // namespace mylos
