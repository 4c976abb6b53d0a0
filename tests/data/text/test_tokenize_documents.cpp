#include "data/text/tokenize_documents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/tokenizer/sentencepiece.hpp"
#include "tests/data/tokenizer/letters_model.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

/// A tokenizer of characters that leaves white space out of offsets, as trim_offsets of a tokenizer.json does.
class TrimmingTokenizer final : public Tokenizer {
 public:
  TokenizerIdentity identity() const override { return {128, 0}; }
  void tokenize(std::string_view text, Tokens& tokens) const override {
    for (unsigned i = 0; i < text.size(); ++i) {
      tokens.ids.push_back(text[i]);
      tokens.offsets.push_back({text[i] == ' ' ? i + 1 : i, i + 1});
    }
  }
  Tokens tokenize_untrimmed(std::string_view text) const override {
    Tokens tokens;
    tokenize(text, tokens);
    for (unsigned i = 0; i < text.size(); ++i) tokens.offsets[i].begin = i;
    return tokens;
  }
  std::string token(TokenId) const override { return ""; }
  bool continues_word(TokenId) const override { return false; }
  std::optional<TokenId> special(SpecialToken) const override { return std::nullopt; }
};

class TokenizeDocuments : public ::testing::Test {
 protected:
  SentencePieceTokenizer tokenizer() {
    tests::write_file(directory_ / "tokenizer.model", tests::letters_model());
    return SentencePieceTokenizer::load(FileReader(), directory_ / "tokenizer.model");
  }
  /// Returns the documents "a", "b", "aa", "ab", "ba", ...: the digits of their index.
  static std::vector<Document> texts(std::size_t count) {
    std::vector<Document> documents(count);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t rest = i + 2; rest > 1; rest /= 2) documents[i].text += rest % 2 == 0 ? 'a' : 'b';
      documents[i].line = i + 1;
    }
    return documents;
  }

  tests::TemporaryDirectory directory_;
};

TEST_F(TokenizeDocuments, EachGetsItsOwnIdsOnAnyNumberOfThreads) {
  const auto model = tokenizer();
  for (const std::size_t threads : {0U, 1U, 2U, 7U, 100U}) {
    for (const std::size_t count : {0U, 1U, 16U, 17U, 1000U}) {
      auto documents = texts(count);
      tokenize_documents(documents, "F", &model, threads);
      for (const auto& document : documents) EXPECT_EQ(document.ids, model.encode(document.text)) << document.text;
    }
  }
}

TEST_F(TokenizeDocuments, TokensOfWhiteSpaceAreSupervisedWhereTheirTextIs) {
  const TrimmingTokenizer tokenizer;
  std::vector<Document> documents(1);
  documents[0].text = "a  b c";
  documents[0].supervised_text = {{2, 5}};
  tokenize_documents(documents, "F", &tokenizer, 1);
  EXPECT_THAT(documents[0].ids, ::testing::ElementsAre('a', ' ', ' ', 'b', ' ', 'c'));
  EXPECT_THAT(documents[0].supervised, ::testing::ElementsAre(0, 0, 1, 1, 1, 0));
}

TEST_F(TokenizeDocuments, IdsThatAreThereStay) {
  const auto model = tokenizer();
  auto documents = texts(2);
  documents[1].has_ids = true;
  documents[1].ids = {7, 8};
  tokenize_documents(documents, "F", &model, 1);
  EXPECT_THAT(documents[0].ids, ::testing::ElementsAre(3));
  EXPECT_THAT(documents[1].ids, ::testing::ElementsAre(7, 8));
  documents[0].has_ids = true;
  tokenize_documents(documents, "F", nullptr, 1);
}

TEST_F(TokenizeDocuments, TheFirstErrorIsNamedWithItsLine) {
  const auto model = tokenizer();
  for (const std::size_t threads : {1U, 4U}) {
    auto documents = texts(500);
    documents[490].text = documents[333].text = "a\xFF";
    EXPECT_EQ(tests::error_of([&] { tokenize_documents(documents, "F", &model, threads); }),
              "F, line 334: the text to tokenize: not UTF-8 at byte 1; convert it to UTF-8");
  }
}

}  // namespace
}  // namespace mylos::data
