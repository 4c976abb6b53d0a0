#include "core/base/options/option.hpp"

#include "core/base/options/option_kinds.hpp"
#include "core/base/usage_error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos {
namespace {

using ::testing::HasSubstr;

struct Part {
  std::size_t count = 3;
  std::optional<double> rate = {};
};

struct Whole {
  int other = 0;
  Part part;
};

Option<Part> count_of_part() {
  return count_option(
      named_option<Part>("count", "N", "Section", "train plan", "how many"), {1, 9},
      [](auto& part) -> auto& { return part.count; });
}

TEST(Option, OfAPartIsOneOfTheWhole) {
  const auto option = option_of_whole<Whole>(
      count_of_part(), [](auto& whole) -> auto& { return whole.part; });
  EXPECT_EQ(option.name, "count");
  EXPECT_EQ(option.placeholder, "N");
  EXPECT_EQ(option.section, "Section");
  EXPECT_EQ(option.help, "how many");
  EXPECT_EQ(option.expects, "a whole number from 1 to 9");
  Whole whole;
  EXPECT_TRUE(option.parse(whole, "7"));
  EXPECT_EQ(whole.part.count, 7u);
  EXPECT_FALSE(option.parse(whole, "10"));
  EXPECT_EQ(whole.part.count, 7u);
  EXPECT_EQ(option.print(whole), 7u);
}

TEST(Option, OfAPartThatIsNoSettingIsNoneOfTheWhole) {
  const auto part = [](auto& whole) -> auto& { return whole.part; };
  EXPECT_FALSE(option_of_whole<Whole>(unrecorded(count_of_part()), part).print);
  Option<Part> rate = real_option(
      named_option<Part>("rate", "X", "Section", "train", "rate"), {0, 1},
      [](auto& each) -> auto& { return each.rate; });
  rate.alone = "0.5";
  rate.choices = {"none"};
  const auto whole = option_of_whole<Whole>(rate, part);
  EXPECT_EQ(whole.print(Whole()), nullptr);
  EXPECT_EQ(whole.alone, "0.5");
  EXPECT_EQ(whole.choices, rate.choices);
}

TEST(Option, HasADescriptionOfItsOwnInSomeCommands) {
  const Option<Part> option = with_help(count_of_part(), {{"plan bench", "planned"}, {"eval", "evaluated"}});
  EXPECT_EQ(option.help_for("train"), "how many");
  EXPECT_EQ(option.help_for("plan"), "planned");
  EXPECT_EQ(option.help_for("eval"), "evaluated");
  const auto whole = option_of_whole<Whole>(
      option, [](auto& each) -> auto& { return each.part; });
  EXPECT_EQ(whole.help_for("plan"), "planned");
}

TEST(Option, NamesWholeCommandsAndTheirParts) {
  EXPECT_TRUE(names_command("train bench", "bench"));
  EXPECT_TRUE(names_command("train bench", "bench/step"));
  EXPECT_TRUE(names_command("train bench/step", "bench"));
  EXPECT_TRUE(names_command("train bench/step", "bench/step"));
  EXPECT_FALSE(names_command("train bench/step", "bench/gemm"));
  EXPECT_FALSE(names_command("train", "trains"));
  EXPECT_FALSE(names_command("trains", "train"));
  EXPECT_FALSE(names_command("", "train"));
  EXPECT_FALSE(names_command("train", ""));
}

TEST(Option, IsCalledByItsNameAndAliases) {
  Option<Part> option = count_of_part();
  option.aliases = {"how-many"};
  EXPECT_TRUE(option.is_called("count"));
  EXPECT_TRUE(option.is_called("how-many"));
  EXPECT_FALSE(option.is_called("how_many"));
  EXPECT_FALSE(option.is_called("cou"));
  EXPECT_TRUE(option.belongs_to("plan"));
  EXPECT_FALSE(option.belongs_to("eval"));
  EXPECT_FALSE(option.is_switch());
}

std::string exclusion(const OptionSources& sources) {
  try {
    sources.exclude("batch", "batch-per-rank");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(OptionSources, TwoOfTheSameKindExcludeEachOther) {
  EXPECT_THAT(exclusion({.given = {"batch", "batch-per-rank"}, .configured = {}}),
              HasSubstr("--batch and --batch-per-rank exclude each other"));
  EXPECT_THAT(exclusion({.given = {}, .configured = {"batch", "batch-per-rank"}}),
              HasSubstr("leave one of them out of the configuration"));
}

TEST(OptionSources, TheCommandLineWinsOverTheConfiguration) {
  const OptionSources sources{.given = {"batch"}, .configured = {"batch", "batch-per-rank"}};
  EXPECT_EQ(exclusion(sources), "");
  EXPECT_TRUE(sources.is_overridden("batch-per-rank", "batch"));
  EXPECT_FALSE(sources.is_overridden("batch", "batch-per-rank"));
}

TEST(OptionSources, APeersOptionIsNamedInPlaceOfOurs) {
  const OptionSources sources{.given = {"batch", "batch-per-rank"},
                              .configured = {},
                              .switched_on = {},
                              .spellings = {{"batch-per-rank", "batch-size-per-device"}}};
  EXPECT_THAT(exclusion(sources), HasSubstr("--batch and --batch-size-per-device exclude each other"));
  EXPECT_EQ(sources.spelling("batch"), "batch");
}

}  // namespace
}  // namespace mylos
