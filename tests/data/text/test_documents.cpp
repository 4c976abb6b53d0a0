#include "data/text/documents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/text/read_documents.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using tests::error_of;

TEST(DocumentFormat, IsInTheName) {
  EXPECT_EQ(document_format("a/games.jsonl"), DocumentFormat::json_lines);
  EXPECT_EQ(document_format("games.pgn"), DocumentFormat::pgn);
  EXPECT_EQ(document_format("GAMES.PGN"), DocumentFormat::pgn);
  EXPECT_EQ(document_format("a.b.txt"), DocumentFormat::plain_text);
  EXPECT_EQ(error_of([] { document_format("games.jsonl.gz"); }),
            "games.jsonl.gz: gzip-compressed: decompress it first");
  EXPECT_EQ(error_of([] { document_format("games.csv"); }),
            "games.csv: the format is unknown; use .jsonl (JSON lines), .pgn (chess games), .txt (one document per "
            "line) or .h5 "
            "(written by `mylos prepare`)");
}

TEST(PlainTextDocuments, AreLines) {
  const tests::TemporaryDirectory directory;
  const auto documents = [&](const std::string& bytes) {
    return tests::documents_in(directory / "a.txt", DocumentFormat::plain_text, bytes);
  };
  EXPECT_THAT(documents("one two\r\n\r\n three \nfour"), ElementsAre("1: one two", "2: ", "3:  three ", "4: four"));
  EXPECT_THAT(documents(""), ElementsAre());
  EXPECT_THAT(documents("a\n\xFF\n"), ElementsAre("error: F, line 2: not UTF-8 at byte 0; convert it to UTF-8"));
}

}  // namespace
}  // namespace mylos::data
