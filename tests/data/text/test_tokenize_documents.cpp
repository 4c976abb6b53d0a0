#include "data/text/tokenize_documents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/tokenizer/sentencepiece.hpp"
#include "tests/data/tokenizer/letters_model.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

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
