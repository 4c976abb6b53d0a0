#include "data/tokenizer/sentencepiece.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "tests/data/tokenizer/letters_model.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using tests::error_of_file;
using tests::TemporaryDirectory;

using tests::letters_model;
using tests::proto_field;
using tests::proto_piece;

class SentencePiece : public ::testing::Test {
 protected:
  SentencePieceTokenizer load(const std::string& bytes) {
    tests::write_file(path_, bytes);
    return SentencePieceTokenizer::load(FileReader(), path_);
  }
  std::string error(const std::string& bytes) {
    return error_of_file(path_, [&] { load(bytes); });
  }

  TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "tokenizer.model";
};

TEST_F(SentencePiece, EncodesAndDecodes) {
  const auto tokenizer = load(letters_model());
  EXPECT_EQ(tokenizer.size(), 5U);
  EXPECT_EQ(tokenizer.special(SpecialToken::unknown), 0);
  EXPECT_EQ(tokenizer.special(SpecialToken::first), 1);
  EXPECT_EQ(tokenizer.special(SpecialToken::end), 2);
  EXPECT_EQ(tokenizer.token(2), "</s>");
  EXPECT_THAT(tokenizer.encode("abba"), ElementsAre(3, 4, 4, 3));
  EXPECT_THAT(tokenizer.encode(""), ElementsAre());
  EXPECT_EQ(tokenizer.decode(std::array<TokenId, 5>{1, 3, 4, 3, 2}), "aba");
  EXPECT_EQ(tokenizer.decode({}), "");
}

TEST_F(SentencePiece, OffsetsAreCodePoints) {
  const auto tokenizer = load(letters_model());
  const std::string text = "aé中ba";
  Tokens tokens = tokenizer.tokenize("b");
  tokenizer.tokenize(text, tokens);
  EXPECT_THAT(tokens.ids, ElementsAre(4, 3, 0, 4, 3));  // a run of unknowns is one token
  EXPECT_THAT(tokens.offsets, ElementsAre(CodePointRange{0, 1}, CodePointRange{0, 1}, CodePointRange{1, 3},
                                          CodePointRange{3, 4}, CodePointRange{4, 5}));
  EXPECT_EQ(tokenizer.encode(text), tokenizer.tokenize(text).ids);
}

TEST_F(SentencePiece, SpecialTokensInATextAreText) {
  EXPECT_THAT(load(letters_model()).encode("<s>a</s>"), ElementsAre(0, 3, 0));  // a run of unknowns is one token
}

TEST_F(SentencePiece, AModelNeedsNeitherBosNorEos) {
  const auto tokenizer = load(proto_piece("<unk>", 2) + proto_piece("a", 1) + proto_field(2, "\x18\x02") +
                              proto_field(3, proto_field(1, "identity")));
  EXPECT_EQ(tokenizer.special(SpecialToken::first), std::nullopt);
  EXPECT_EQ(tokenizer.special(SpecialToken::end), std::nullopt);
}

TEST_F(SentencePiece, RefusesTextThatIsNotUtf8AndIdsOutsideTheModel) {
  const auto tokenizer = load(letters_model());
  EXPECT_THAT(tests::error_of([&] { (void)tokenizer.encode("a\xC3"); }), HasSubstr("not UTF-8 at byte 1"));
  const auto outside = "id 5 is outside the tokenizer's 5 pieces";
  EXPECT_EQ(tests::error_of([&] { (void)tokenizer.decode(std::array<TokenId, 2>{3, 5}); }), outside);
  EXPECT_EQ(tests::error_of([&] { (void)tokenizer.token(5); }), outside);
  EXPECT_EQ(tests::error_of([&] { (void)tokenizer.decode(std::array<TokenId, 1>{-1}); }),
            "id -1 is outside the tokenizer's 5 pieces");
}

TEST_F(SentencePiece, TellsModelsApart) {
  const auto identity = load(letters_model()).identity();
  auto other = letters_model();
  other.replace(other.find("\x01"
                           "b"),
                2,
                "\x01"
                "c");
  EXPECT_EQ(identity, load(letters_model()).identity());
  EXPECT_EQ(identity.size, 5U);
  EXPECT_NE(identity, load(other).identity());
}

TEST_F(SentencePiece, NamesAFileThatIsNoModel) {
  EXPECT_EQ(tests::error_of([&] { SentencePieceTokenizer::load(FileReader(), directory_ / "absent"); }),
            "cannot read " + (directory_ / "absent").string() + ": No such file or directory");
  EXPECT_EQ(error(""), "F: not a SentencePiece model: the file is empty");
  const auto other = "F: not a SentencePiece model: it does not begin with a list of pieces";
  EXPECT_EQ(error("{\"model\": 1}"), other);
  EXPECT_EQ(error("\n\x7Fx"), other);
  EXPECT_EQ(error("version https://example.org/spec/v1\n"), other);
  EXPECT_EQ(error(proto_field(2, "") + proto_field(3, "")), "F: not a SentencePiece model: it has no pieces");
  EXPECT_EQ(error(proto_piece("a", 1) + proto_field(2, "") + proto_field(3, "")),
            "F: not a SentencePiece model: unk is not defined.");
  EXPECT_EQ(error(proto_field(1, "\xFF\xFF") + proto_field(2, "") + proto_field(3, "")),
            "F: not a SentencePiece model: its contents are damaged");
}

TEST_F(SentencePiece, NoMessageOfTheLibraryReachesTheUser) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  load(letters_model());
  error(proto_piece("a", 1) + proto_field(2, "") + proto_field(3, ""));
  error(proto_field(1, "\xFF\xFF") + proto_field(2, "") + proto_field(3, ""));
  error(proto_piece("<unk>", 2) + letters_model());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST_F(SentencePiece, AModelCutShortIsRefusedWhereverItEnds) {
  const auto whole = letters_model();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto message = error(whole.substr(0, size));
    EXPECT_THAT(message, AnyOf(HasSubstr("cut short"), EndsWith("it does not begin with a list of pieces"))) << size;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

// ---- recorded ids -------------------------------------------------------------------------------------------------

void compare_recorded(const std::string& model) {
  const auto directory = tests::shared_reference() / "llama" / model;
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << directory << " is not there (MYLOS_REFERENCE)";
  const auto tokenizer = SentencePieceTokenizer::load(FileReader(), directory / "tokenizer.model");
  EXPECT_EQ(tokenizer.size(), 512U);
  const auto rows = tests::json_lines(directory / "tokens.jsonl");
  ASSERT_EQ(rows.size(), 260U);
  for (const auto& row : rows) {
    const auto text = row.at("text").get<std::string>();
    const auto ids = row.at("ids").get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer.encode(text), ids) << row.dump();
    EXPECT_EQ(tokenizer.decode(ids), row.contains("decoded") ? row.at("decoded").get<std::string>() : text)
        << row.dump();
  }
}

TEST(SentencePieceRecorded, ChessIdsAreSentencePieces) { compare_recorded("chess"); }
TEST(SentencePieceRecorded, StoriesIdsAreSentencePieces) { compare_recorded("stories260K"); }

TEST(SentencePieceRecorded, SeveralThreadsGetTheSameIds) {
  const auto directory = tests::shared_reference() / "llama" / "chess";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << directory << " is not there (MYLOS_REFERENCE)";
  const auto tokenizer = SentencePieceTokenizer::load(FileReader(), directory / "tokenizer.model");
  const auto rows = tests::json_lines(directory / "tokens.jsonl");
  std::array<std::size_t, 4> wrong{};
  std::vector<std::thread> threads;
  for (std::size_t& count : wrong) {
    threads.emplace_back([&tokenizer, &rows, &count] {
      for (const auto& row : rows) {
        const auto ids = tokenizer.encode(row.at("text").get_ref<const std::string&>());
        count += ids == row.at("ids").get<std::vector<TokenId>>() ? 0 : 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace mylos::data
