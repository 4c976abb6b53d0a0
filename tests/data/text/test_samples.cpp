#include "data/text/samples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/tokenizer/sentencepiece.hpp"
#include "tests/data/tokenizer/letters_model.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;

class Samples : public ::testing::Test {
 protected:
  void SetUp() override { tests::write_file(directory_ / "tokenizer.model", tests::letters_model()); }

  SampleSet read(const std::string& name, const std::string& bytes) {
    tests::write_file(directory_ / name, bytes);
    const auto tokenizer = SentencePieceTokenizer::load(FileReader(), directory_ / "tokenizer.model");
    return read_samples(directory_ / name, &tokenizer, options_, reading_);
  }
  std::string error(const std::string& name, const std::string& bytes) {
    return tests::error_of_file(directory_ / name, [&] { read(name, bytes); });
  }
  static std::vector<std::vector<TokenId>> samples(const SampleSet& set) {
    std::vector<std::vector<TokenId>> all;
    for (std::size_t i = 0; i < set.size(); ++i) all.emplace_back(set.sample(i).begin(), set.sample(i).end());
    return all;
  }

  tests::TemporaryDirectory directory_;
  SampleOptions options_ = {.max_length = 4, .begin = 1, .end = 2, .vocabulary_size = 5};
  ReadOptions reading_;
};

TEST_F(Samples, AreBosIdsEos) {
  const auto set = read("a.txt", "a\nab\n");
  EXPECT_THAT(samples(set), ElementsAre(ElementsAre(1, 3, 2), ElementsAre(1, 3, 4, 2)));
  EXPECT_THAT(set.documents, ElementsAre(0, 1));
  EXPECT_THAT(set.lines, ElementsAre(1, 2));
  EXPECT_EQ(set.predicted(), 5U);
  EXPECT_EQ(set.counts, (SampleCounts{.documents = 2}));
  EXPECT_TRUE(describe_losses(set, options_).empty());
}

TEST_F(Samples, OfLabelsAreCutAndKeepWhatIsSupervised) {
  const std::string rows =
      "{\"input_ids\": [3, 4, 3, 4, 3], \"labels\": [3, -100, 3, -100, 3]}\n"
      "{\"input_ids\": [3, 4, 3, 4, 3], \"labels\": [3, -100, -100, -100, 3]}\n"
      "{\"input_ids\": [3, 4], \"labels\": [-100, 4]}\n";
  const auto set = read("a.jsonl", rows);
  EXPECT_THAT(samples(set), ElementsAre(ElementsAre(3, 4, 3, 4), ElementsAre(3, 4)));
  EXPECT_THAT(set.supervised, ElementsAre(1, 0, 1, 0, 0, 1));
  EXPECT_EQ(set.predicted(0), 1U);  // nothing predicts the first token
  EXPECT_EQ(set.predicted(), 2U);
  EXPECT_THAT(describe_losses(set, options_),
              ElementsAre("2 of 3 documents are longer than 4 tokens and truncated: 2 tokens left out",
                          "1 sample without a supervised token is left out"));
  options_.long_documents = LongDocuments::split;
  EXPECT_THAT(
      tests::error_of([&] { read("a.jsonl", rows); }),
      ::testing::EndsWith("a.jsonl, line 1: a sample of which only a part is supervised is not split; leave it out, "
                          "or use truncate"));
  options_.long_documents.reset();
  EXPECT_EQ(error("a.jsonl", "{\"input_ids\": [3, 4], \"labels\": [3, -100]}"),
            "F: no sample has a supervised token among its first 4 tokens");
  EXPECT_EQ(error("a.jsonl", "{\"input_ids\": [3, 4, 3, 4, 3], \"labels\": [3, -100, -100, -100, 3]}"),
            "F: no sample has a supervised token among its first 4 tokens; raise `max-length`");
}

TEST_F(Samples, OfCompletionsHaveBosAndASupervisedEnd) {
  options_.max_length = 9;
  const auto set = read("a.jsonl", R"({"prompt": "ab", "completion": "ba"})");
  EXPECT_THAT(samples(set), ElementsAre(ElementsAre(1, 3, 4, 4, 3, 2)));
  EXPECT_THAT(set.supervised, ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST_F(Samples, OfConversationsNameTheirTemplate) {
  tests::write_file(directory_ / "chat_template.jinja", "{{ messages[0].content }}");
  reading_.model = directory_.path();
  options_.loss_on = LossOn::all;
  const std::string chat = R"({"messages": [{"role": "user", "content": "ab"}]})";
  const auto set = read("a.jsonl", chat);
  EXPECT_EQ(set.chat_template, ChatFormat(directory_.path()).checksum());
  tests::write_file(directory_ / "chat_template.jinja", "{{ messages[0]['content'] }}");
  EXPECT_NE(read("a.jsonl", chat).chat_template, set.chat_template);
  EXPECT_EQ(read("a.jsonl", R"({"text": "ab"})").chat_template, std::nullopt);
}

TEST_F(Samples, BosAndEosMayBeAbsent) {
  options_.begin.reset();
  EXPECT_THAT(samples(read("a.txt", "ab\n")), ElementsAre(ElementsAre(3, 4, 2)));
  options_.end.reset();
  EXPECT_THAT(samples(read("a.txt", "ab\n")), ElementsAre(ElementsAre(3, 4)));
  options_.begin = 1;
  EXPECT_THAT(samples(read("a.txt", "ab\n")), ElementsAre(ElementsAre(1, 3, 4)));
}

TEST_F(Samples, ALongDocumentContinuesAsAnotherSample) {
  const auto set = read("a.txt", "a\nabbaab\nb\n");  // 1 3 4 4 | 3 3 4 2
  EXPECT_THAT(samples(set), ElementsAre(ElementsAre(1, 3, 2), ElementsAre(1, 3, 4, 4), ElementsAre(3, 3, 4, 2),
                                        ElementsAre(1, 4, 2)));
  EXPECT_THAT(set.documents, ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(set.samples_of(1), ::testing::Pair(1, 3));
  EXPECT_THAT(set.samples_of(2), ::testing::Pair(3, 4));
  EXPECT_EQ(set.counts, (SampleCounts{.documents = 3, .long_documents = 1}));
  EXPECT_THAT(describe_losses(set, options_),
              ElementsAre("1 of 3 documents is longer than 4 tokens and split into several samples"));
}

TEST_F(Samples, ASingleTokenIsNoSample) {
  const auto set = read("a.txt", "abb\nb\n");  // 1 3 4 4 | 2
  EXPECT_THAT(samples(set), ElementsAre(ElementsAre(1, 3, 4, 4), ElementsAre(1, 4, 2)));
  EXPECT_EQ(set.counts, (SampleCounts{.documents = 2, .long_documents = 1, .short_samples = 1}));
  EXPECT_EQ(describe_losses(set, options_).back(),
            "1 sample of a single token is left out: one token predicts nothing");
  options_.begin.reset(), options_.end.reset();
  EXPECT_EQ(error("a.txt", "a\nb\n"), "F: no document has two tokens, and a single one predicts nothing");
}

TEST_F(Samples, ALongDocumentMayBeTruncated) {
  options_.long_documents = LongDocuments::truncate;
  const auto set = read("a.txt", "abbaab\nab\nabb\n");
  EXPECT_THAT(samples(set), ElementsAre(ElementsAre(1, 3, 4, 4), ElementsAre(1, 3, 4, 2), ElementsAre(1, 3, 4, 4)));
  EXPECT_EQ(set.counts, (SampleCounts{.documents = 3, .long_documents = 2, .tokens_left_out = 5}));
  EXPECT_THAT(describe_losses(set, options_),
              ElementsAre("2 of 3 documents are longer than 4 tokens and truncated: 5 tokens left out"));
}

TEST_F(Samples, EmptyDocumentsAreCounted) {
  const auto set = read("a.txt", "\na\n \t \nb");
  EXPECT_THAT(samples(set), ElementsAre(ElementsAre(1, 3, 2), ElementsAre(1, 4, 2)));
  EXPECT_THAT(set.documents, ElementsAre(1, 3));  // indices of the documents in the file
  EXPECT_THAT(set.samples_of(0), ::testing::Pair(0, 0));
  EXPECT_THAT(set.samples_of(2), ::testing::Pair(1, 1));
  EXPECT_EQ(set.counts, (SampleCounts{.documents = 4, .empty_documents = 2}));
  EXPECT_THAT(describe_losses(set, options_), ElementsAre("2 of 4 documents are empty and left out"));
  EXPECT_EQ(read("a.jsonl", "{\"input_ids\": []}\n{\"input_ids\": [3]}").counts.empty_documents, 1U);
  reading_.strict = true;
  EXPECT_EQ(error("a.txt", "a\n \nb"), "F, line 2: the document is empty");
  EXPECT_EQ(error("a.jsonl", "{\"input_ids\": [3]}\n\n{\"input_ids\": []}"), "F, line 3: the document is empty");
}

TEST_F(Samples, AFileNeedsADocument) {
  EXPECT_EQ(error("a.txt", ""), "F: contains no documents");
  EXPECT_EQ(error("a.jsonl", "\n\n"), "F: contains no documents");
  EXPECT_EQ(error("a.pgn", "; nothing\n"), "F: contains no documents");
  EXPECT_EQ(error("a.txt", "\n\n"), "F: no text to train on, only 2 documents without text");
}

TEST_F(Samples, TheFirstDocumentsOnly) {
  reading_.limit = 2;
  const auto set = read("a.txt", "a\n\nb\n\xFF");  // nothing after the limit is read
  EXPECT_THAT(samples(set), ElementsAre(ElementsAre(1, 3, 2)));
  EXPECT_EQ(set.counts, (SampleCounts{.documents = 2, .empty_documents = 1}));
  reading_.limit.reset();
  auto all = read("a.txt", "abbaab\nb\n\na\n");
  limit_documents(all, 9);
  EXPECT_EQ(all.size(), 4U);
  limit_documents(all, 1);
  EXPECT_THAT(samples(all), ElementsAre(ElementsAre(1, 3, 4, 4), ElementsAre(3, 3, 4, 2)));
  EXPECT_EQ(all.counts.documents, 1U);
}

TEST_F(Samples, IdsOutsideTheVocabularyAreNamed) {
  EXPECT_EQ(error("a.jsonl", "{\"input_ids\": [3]}\n{\"input_ids\": [4, 5]}"),
            "F, line 2: input_ids[1]: id 5 is outside the model's vocabulary of 5");
  options_.vocabulary_size = 4;
  EXPECT_EQ(error("a.txt", "a\naab\n"), "F, line 2: id 4 is outside the model's vocabulary of 4");
  options_.end = 4;
  EXPECT_EQ(error("a.txt", "a\n"), "BOS or EOS 4 is outside the model's vocabulary of 4");
}

TEST_F(Samples, WithoutATokenizerDocumentsBringIds) {
  const auto path = directory_ / "a.jsonl";
  tests::write_file(path, "{\"input_ids\": [3, 4]}");
  EXPECT_THAT(samples(read_samples(path, nullptr, options_, {})), ElementsAre(ElementsAre(1, 3, 4, 2)));
  tests::write_file(path, "\n{\"text\": \"ab\"}");
  EXPECT_EQ(tests::error_of_file(path, [&] { read_samples(path, nullptr, options_, {}); }),
            "F, line 2: text, but the model's directory has no tokenizer; give ids as input_ids instead");
}

TEST_F(Samples, NeedRoomForTwoTokens) {
  options_.max_length = 1;
  EXPECT_THAT(error("a.txt", "a"), ::testing::HasSubstr("samples of at most 1 tokens predict nothing; use at least 2"));
}

TEST_F(Samples, ManyDocumentsKeepTheirOrderOnAnyNumberOfThreads) {
  std::string text;
  for (int i = 0; i < 20'000; ++i)
    text += std::string(1 + i % 7, i % 3 == 0 ? 'a' : 'b') + (i % 5 == 0 ? "\n\n" : "\n");
  reading_.threads = 1;
  const auto one = read("a.txt", text);
  reading_.threads = 5;
  EXPECT_EQ(one, read("a.txt", text));
  EXPECT_EQ(one.counts.documents, 24'000U);
  EXPECT_EQ(one.lines.back(), 24'000U);
  EXPECT_EQ(one.documents.back(), 23'999U);
}

// ---- recorded run -------------------------------------------------------------------------------------------------

/// Reads the samples of a file of games with llama/chess's tokenizer, as in its recorded run.
SampleSet chess_samples(const char* file) {
  const auto tokenizer =
      SentencePieceTokenizer::load(FileReader(), tests::shared_reference() / "llama/chess/tokenizer.model");
  const SampleOptions options = {
      .max_length = 256, .long_documents = LongDocuments::truncate, .begin = 1, .end = 2, .vocabulary_size = 512};
  return read_samples(tests::shared_data() / "chess" / file, &tokenizer, options, {});
}

TEST(SamplesOfChess, HaveTheTokensOfTheRecordedSteps) {
  const auto reference = tests::shared_reference() / "llama" / "chess";
  if (!std::filesystem::exists(reference)) GTEST_SKIP() << reference << " is not there (MYLOS_REFERENCE)";
  if (!std::filesystem::exists(tests::shared_data() / "chess")) GTEST_SKIP() << "the games are not there (MYLOS_DATA)";
  const auto set = chess_samples("games-train.jsonl");
  ASSERT_EQ(set.size(), 1200U);
  EXPECT_EQ(set.counts.long_documents, 66U);
  const auto order = tests::json_lines(reference / "order.jsonl"), steps = tests::json_lines(reference / "steps.jsonl");
  ASSERT_EQ(order.size(), 400U);
  ASSERT_EQ(steps.size(), 400U);
  for (std::size_t step = 0; step < order.size(); ++step) {
    std::size_t tokens = 0;
    for (const auto& document : order[step]) tokens += set.length(document.get<std::size_t>());
    EXPECT_EQ(tokens, steps[step].at("tokens").get<std::size_t>()) << step;
  }
  EXPECT_EQ(chess_samples("games-dev.jsonl").predicted(), 28'404U);
}

}  // namespace
}  // namespace mylos::data
