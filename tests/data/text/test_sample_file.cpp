#include "data/text/sample_file.hpp"

#include <gtest/gtest.h>

#include "tests/data/text/small_samples.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using tests::small_samples;

/// Returns the error of using the small samples with these settings.
std::string sample_message(const std::optional<TokenizerIdentity>& tokenizer, const SampleOptions& options) {
  return tests::error_of([&] { check_prepared_for(small_samples(), "F", tokenizer, options); });
}

TEST(SampleFile, IsForTheRunThatHasTheSame) {
  const auto prepared = small_samples();
  const std::string nothing = "(nothing was thrown)";
  EXPECT_EQ(sample_message(prepared.tokenizer, prepared.options), nothing);
  EXPECT_EQ(sample_message(std::nullopt, prepared.options), nothing);
  auto without = small_samples();
  without.tokenizer.reset();
  EXPECT_NO_THROW(check_prepared_for(without, "F", prepared.tokenizer, prepared.options));
}

TEST(SampleFile, WhatDiffersIsNamedWithBothValues) {
  const std::string advice = "; prepare it again with `mylos prepare`, or run with the same";
  const auto prepared = small_samples();
  const auto with = [&](auto change) {
    auto options = prepared.options;
    change(options);
    return sample_message(prepared.tokenizer, options);
  };
  EXPECT_EQ(
      sample_message(TokenizerIdentity{10, 1}, prepared.options),
      "F was prepared with a tokenizer of 10 tokens (CRC32C abcdef01), this run has a tokenizer of 10 tokens (CRC32C "
      "00000001)" +
          advice);
  EXPECT_EQ(with([](auto& options) { options.max_length = 5; }),
            "F was prepared with `max-length` 4, this run has 5" + advice);
  EXPECT_EQ(with([](auto& options) { options.long_documents = LongDocuments::truncate; }),
            "F was prepared with `long` split, this run has truncate" + advice);
  EXPECT_EQ(with([](auto& options) { options.begin.reset(); }),
            "F was prepared with BOS 1, this run has none" + advice);
  EXPECT_EQ(with([](auto& options) { options.end = 3; }), "F was prepared with EOS 2, this run has 3" + advice);
  EXPECT_EQ(with([](auto& options) { options.chat_template = 7; }), "(nothing was thrown)") << "no conversations";
  auto chats = prepared;
  chats.set.chat_template = 0xabcU;
  const auto of_chats = [&](std::optional<std::uint32_t> of_run) {
    auto options = prepared.options;
    options.chat_template = of_run;
    return tests::error_of([&] { check_prepared_for(chats, "F", {}, options); });
  };
  EXPECT_EQ(of_chats(0xabcU), "(nothing was thrown)");
  EXPECT_EQ(
      of_chats(7),
      "F was prepared with a chat template (CRC32C 00000abc), this run has a chat template (CRC32C 00000007)" + advice);
  EXPECT_EQ(of_chats({}),
            "F was prepared with a chat template (CRC32C 00000abc), this run has no chat template" + advice);
}

TEST(SampleFile, OnlyIdsThatThereAreHaveToBeInTheVocabulary) {
  auto prepared = small_samples();
  auto options = prepared.options;
  options.vocabulary_size = 10;
  EXPECT_EQ(sample_message(prepared.tokenizer, options),
            "F: id 10 is outside the model's vocabulary of 10; the file was prepared for one of 11");
  prepared.options.vocabulary_size = 64;  // a padded embedding table
  options.vocabulary_size = 11;
  EXPECT_NO_THROW(check_prepared_for(prepared, "F", prepared.tokenizer, options));
}

TEST(SampleFile, IsWrittenAsLinesForPeople) {
  const tests::TemporaryDirectory directory;
  const auto path = directory / "samples.jsonl";
  write_sample_lines(path, small_samples().set);
  EXPECT_EQ(tests::read_file(path),
            "{\"line\": 1, \"input_ids\": [1, 3, 2]}\n{\"line\": 4, \"input_ids\": [1, 4, 5, 6]}\n"
            "{\"line\": 4, \"input_ids\": [7, 2]}\n{\"line\": 5, \"input_ids\": [1, 10, 2]}\n");
  SampleOptions as_they_are = {.max_length = 4, .begin = {}, .end = {}, .vocabulary_size = 11};
  EXPECT_EQ(read_samples(path, nullptr, as_they_are, {}).ids, small_samples().set.ids);
}

TEST(SampleFile, LinesLongerThanABlockAreWhole) {
  const tests::TemporaryDirectory directory;
  const auto path = directory / "samples.jsonl";
  SampleSet set;
  for (std::size_t i = 0; i < 400; ++i) {
    set.ids.values().resize(1000 * (i + 1), static_cast<TokenId>(i));
    set.starts.values().push_back(set.ids.size());
    set.documents.values().push_back(i);
    set.lines.values().push_back(i + 1);
  }
  set.counts.documents = 400;
  write_sample_lines(path, set);
  EXPECT_EQ(read_samples(path, nullptr, {.max_length = 1000, .begin = {}, .end = {}, .vocabulary_size = 400}, {}), set);
}

}  // namespace
}  // namespace mylos::data
