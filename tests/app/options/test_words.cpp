#include "app/options/words.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace mylos::app {
namespace {

using Words = std::vector<std::string>;

const std::vector<OptionName>& known_names() {
  static const std::vector<OptionName> names = {{"batch"},       {"batch-per-rank"}, {"bat"},       {"context"},
                                                {"json", false}, {"no-json", false}, {"stage.two"}, {"bf16", false}};
  return names;
}

ReadWords read(const Words& words, TruthWords truths = TruthWords::values) {
  return read_words(known_names(), words, truths);
}

/// Returns the options among `words` that are unknown.
Words unknown(const Words& words) {
  Words all;
  for (const ReadOption& option : read(words).options) {
    if (std::ranges::find(known_names(), option.name, &OptionName::name) != known_names().end()) continue;
    EXPECT_FALSE(option.value) << "it may be a secret";
    all.push_back(option.typed);
  }
  return all;
}

/// Formats options as "batch=3" if they have a value, and as "json" otherwise.
Words reported(const ReadWords& read) {
  Words all;
  for (const ReadOption& option : read.options) all.push_back(option.name + (option.value ? "=" + *option.value : ""));
  return all;
}

Words reported(const Words& words, TruthWords truths = TruthWords::values) { return reported(read(words, truths)); }

TEST(CommandWords, ANameIsReadToItsEnd) {
  EXPECT_EQ(reported({"--bat", "1", "--batch", "2", "--batch-per-rank=3"}),
            (Words{"bat=1", "batch=2", "batch-per-rank=3"}));
  EXPECT_EQ(unknown({"--batch-per", "3"}), Words{"--batch-per"}) << "nothing is completed";
  EXPECT_EQ(unknown({"--ba=3", "--b", "--", "--c"}), (Words{"--ba", "--b"}));
  EXPECT_EQ(unknown({"--BATCH=3"}), Words{"--BATCH"});
}

TEST(CommandWords, NamesAreReadWithUnderscoresAndDots) {
  const ReadWords all = read({"--batch_per_rank", "a_b", "--batch_per-rank=c_d", "--stage.two=3", "--stage.two", "4"});
  EXPECT_EQ(reported(all), (Words{"batch-per-rank=a_b", "batch-per-rank=c_d", "stage.two=3", "stage.two=4"}));
  EXPECT_EQ(all.options[0].typed, "--batch_per_rank");
  EXPECT_EQ(all.options[1].typed, "--batch_per-rank");
  EXPECT_EQ(unknown({"--stage_two", "--stage-two=1", "--stage"}), (Words{"--stage_two", "--stage-two", "--stage"}));
}

TEST(CommandWords, ValuesAreTakenAsTheyAre) {
  for (const std::string value : {"",         "=",  "=3",  "!",  "a,b,,c",     "a b",    " ",    "a=b",
                                  "-",        "-2", "-o",  "-h", "-5 degrees", "a\nb",   "\r\n", "\xff\xfe\x01",
                                  "\xc3\xa9", "\"", "--x", "--", "--batch=4",  "--help", "true"}) {
    SCOPED_TRACE(value);
    EXPECT_EQ(reported({"--context=" + value, "--json"}), (Words{"context=" + value, "json"}));
    EXPECT_FALSE(read({"--context=" + value}).help);
    if (value.starts_with("--")) continue;
    EXPECT_EQ(reported({"--context", value, "--json"}), (Words{"context=" + value, "json"}));
    EXPECT_FALSE(read({"--context", value}).help);
  }
}

TEST(CommandWords, AnOptionIsNoValue) {
  EXPECT_EQ(reported({"--context", "--batch", "--json"}), (Words{"context", "batch", "json"}));
  EXPECT_EQ(reported({"--context"}), Words{"context"});
  const ReadWords ended = read({"--context", "--", "--batch=3"});
  EXPECT_EQ(reported(ended), Words{"context"});
  EXPECT_EQ(ended.positional, Words{"--batch=3"});
}

TEST(CommandWords, ASwitchTakesTrueAndFalse) {
  EXPECT_EQ(reported({"--json", "True", "--bf16", "0", "--no-json"}), (Words{"json=True", "bf16=0", "no-json"}));
  EXPECT_EQ(reported({"--json=maybe", "--bf16="}), (Words{"json=maybe", "bf16="}));
  const ReadWords word = read({"--json", "maybe"});
  EXPECT_EQ(reported(word), Words{"json"});
  EXPECT_EQ(word.positional, Words{"maybe"});
  const ReadWords positional = read({"--json", "true", "--batch", "1"}, TruthWords::positional);
  EXPECT_EQ(reported(positional), (Words{"json", "batch=1"}));
  EXPECT_EQ(positional.positional, Words{"true"});
}

TEST(CommandWords, OtherWordsArePositional) {
  const ReadWords all =
      read({"Who, where?", "-", "-5", "-5 degrees", "--json", "", "!", "=", "a=b", "--", "-x", "--", "--batch", "-h"});
  EXPECT_EQ(all.positional,
            (Words{"Who, where?", "-", "-5", "-5 degrees", "", "!", "=", "a=b", "-x", "--", "--batch", "-h"}));
  EXPECT_EQ(reported(all), Words{"json"});
  EXPECT_TRUE(all.dashed.empty());
  EXPECT_FALSE(all.help);
}

TEST(CommandWords, OtherOptionsAreUnknown) {
  const Words words = {"--batch", "1",  "--quux=secret", "---x",     "--=3", "--\xc3\xa9", "--?",
                       "--json",  "-o", "-xh",           "--batch=2"};
  EXPECT_EQ(unknown(words), (Words{"--quux", "---x", "--", "--\xc3\xa9", "--?"}));
  const ReadWords all = read(words);
  EXPECT_EQ(all.dashed, (Words{"-o", "-xh"}));
  EXPECT_EQ(reported(all), (Words{"batch=1", "quux", "-x", "", "\xc3\xa9", "?", "json", "batch=2"}))
      << "all in their order";
  EXPECT_FALSE(all.help);
  EXPECT_EQ(read({"--quux", "-"}).positional, Words{"-"});
}

TEST(CommandWords, HelpIsFoundWhereItIsNoValue) {
  for (const Words& words : {Words{"--help"}, Words{"-h"}, Words{"--quux", "--help", "x"}, Words{"--json", "-h"},
                             Words{"--context", "--help"}, Words{"a", "-h", "--", "b"}}) {
    EXPECT_TRUE(read(words).help) << words.front();
  }
  EXPECT_FALSE(read({"--context", "-h", "--", "--help", "-h"}).help);
}

TEST(CommandWords, EachOptionKeepsItsWordsAndItsPlace) {
  const ReadWords all =
      read({"a", "--batch", "1", "b", "--json", "yes", "--batch=2", "--json", "--context", "-3", "--context"});
  std::vector<Words> words;
  for (const ReadOption& option : all.options) words.push_back(option.words);
  EXPECT_EQ(words,
            (std::vector<Words>{
                {"--batch", "1"}, {"--json", "yes"}, {"--batch=2"}, {"--json"}, {"--context", "-3"}, {"--context"}}));
  EXPECT_EQ(all.positional, (Words{"a", "b"}));
}

TEST(CommandWords, ManyWordsAndLongOnesAreRead) {
  Words words;
  for (int i = 0; i < 2500; ++i) {
    for (const std::string& word :
         {std::string("--batch"), std::to_string(i), "--bat=" + std::to_string(i), std::string("w")}) {
      words.push_back(word);
    }
  }
  const ReadWords all = read(words);
  ASSERT_EQ(all.options.size(), 5000u);
  EXPECT_EQ(all.positional.size(), 2500u);
  EXPECT_EQ(*all.options[4999].value, "2499");
  const std::string long_word(1 << 20, 'a');
  EXPECT_EQ(reported({"--context=" + long_word, "--context", long_word, "--json=" + long_word}),
            (Words{"context=" + long_word, "context=" + long_word, "json=" + long_word}));
  EXPECT_EQ(unknown({"--" + long_word, long_word}).size(), 1u);
}

}  // namespace
}  // namespace mylos::app
