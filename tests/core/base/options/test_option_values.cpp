#include "core/base/options/option_values.hpp"

#include <gtest/gtest.h>

namespace mylos {
namespace {

TEST(Values, CountsAreWholeNumbersOfTheirRange) {
  const CountRange range{1, 512};
  EXPECT_EQ(parse_count("1", range), 1u);
  EXPECT_EQ(parse_count("512", range), 512u);
  for (const char* wrong : {"", "0", "513", "-1", "+1", " 1", "1 ", "1.0", "12abc", "1e3", "0x10", "nan", "inf",
                            "18446744073709551616", "99999999999999999999999"}) {
    EXPECT_EQ(parse_count(wrong, range), std::nullopt) << wrong;
  }
  EXPECT_EQ(parse_count("18446744073709551615", {0, UINT64_MAX}), UINT64_MAX);
  EXPECT_EQ(describe(range), "a whole number from 1 to 512");
  EXPECT_EQ(describe(CountRange{0, UINT64_MAX}), "a whole number from 0 to 2^64 - 1");
}

TEST(Values, RealsAreFiniteAndWithinTheirEnds) {
  const RealRange closed{0, 1}, open{0, 1, true, true};
  EXPECT_EQ(parse_real("3e-5", closed), 3e-5);
  EXPECT_EQ(parse_real(".5", closed), 0.5);
  EXPECT_EQ(parse_real("0", closed), 0.0);
  EXPECT_EQ(parse_real("1", closed), 1.0);
  EXPECT_EQ(parse_real("0", open), std::nullopt);
  EXPECT_EQ(parse_real("1", open), std::nullopt);
  for (const char* wrong : {"", "nan", "-nan", "inf", "-inf", "infinity", "1e999", "-0.1", "1.1", "0.5x", " 0.5",
                            "0x1p-3", "0,5", "1e-99999x"}) {
    EXPECT_EQ(parse_real(wrong, closed), std::nullopt) << wrong;
  }
  EXPECT_EQ(describe(closed), "a number from 0 to 1");
  EXPECT_EQ(describe(RealRange{0, 1, true, false}), "a number above 0 and at most 1");
  EXPECT_EQ(describe(RealRange{0, 1, false, true}), "a number of at least 0 and below 1");
  EXPECT_EQ(parse_real("3e30", {0, unbounded}), 3e30);
  EXPECT_EQ(parse_real("inf", {-unbounded, unbounded}), std::nullopt);
  EXPECT_EQ(describe(RealRange{0, unbounded}), "a number of at least 0");
  EXPECT_EQ(describe(RealRange{0, unbounded, true}), "a number above 0");
  EXPECT_EQ(describe(RealRange{-unbounded, unbounded}), "a number");
}

TEST(Values, ChoicesKnowTheirAliases) {
  const std::vector<Choice> choices = {{"float", {"fp32", "32"}}, {"bfloat16", {"bf16"}}, {"half", {}}};
  EXPECT_EQ(parse_choice("float", choices), "float");
  EXPECT_EQ(parse_choice("32", choices), "float");
  EXPECT_EQ(parse_choice("bf16", choices), "bfloat16");
  EXPECT_EQ(parse_choice("Float", choices), std::nullopt);
  EXPECT_EQ(parse_choice("", choices), std::nullopt);
  EXPECT_EQ(describe(choices), "float, bfloat16 or half");
}

TEST(Values, TheNearestNameIsOneOrTwoSlipsAway) {
  const std::vector<std::string> names = {"epochs", "learning-rate", "lr", "batch", "best-by"};
  EXPECT_EQ(nearest_name("epoch", names), "epochs");
  EXPECT_EQ(nearest_name("ecpohs", names), "epochs");
  EXPECT_EQ(nearest_name("lerning-rate", names), "learning-rate");
  EXPECT_EQ(nearest_name("learning", names), "learning-rate");
  EXPECT_EQ(nearest_name("bacth", names), "batch");
  EXPECT_EQ(nearest_name("xyzzy", names), "");
}

TEST(Values, DurationsAreReadAsPeopleAndSchedulersWriteThem) {
  EXPECT_EQ(parse_duration("90s"), 90.0);
  EXPECT_EQ(parse_duration("10m"), 600.0);
  EXPECT_EQ(parse_duration("1.5h"), 5400.0);
  EXPECT_EQ(parse_duration("2d"), 172800.0);
  EXPECT_EQ(parse_duration("45"), 45.0);
  EXPECT_EQ(parse_duration("1:30:00"), 5400.0);
  EXPECT_EQ(parse_duration("1-00:00:00"), 86400.0);
  for (const char* text : {"", "s", "m10", "10 m", "-5s", "0", "0s", "0:00", "1:2:3:4", "nan", "1e99s", "10ms"}) {
    EXPECT_FALSE(parse_duration(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace mylos
