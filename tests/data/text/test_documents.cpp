#include "data/text/documents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/data/text/read_documents.hpp"
#include "tests/support/temporary.hpp"

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

using ::testing::ElementsAre;
using ::testing::EndsWith;

class LineReaderTest : public ::testing::Test {
 protected:
  std::vector<std::string> lines_of(const std::string& bytes) {
    tests::write_file(path_, bytes);
    return lines();
  }
  std::vector<std::string> lines() {
    LineReader reader(path_);
    std::vector<std::string> lines;
    for (std::string_view line; reader.next(line);) lines.emplace_back(line);
    EXPECT_EQ(reader.number(), lines.size());
    EXPECT_EQ(reader.bytes_read(), reader.bytes());
    return lines;
  }
  std::string error(const std::string& bytes) {
    return tests::error_of_file(path_, [&] { lines_of(bytes); });
  }

  tests::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "lines.txt";
};

TEST_F(LineReaderTest, EndsOfLines) {
  EXPECT_THAT(lines_of("a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(lines_of("a\r\n\r\nb\rc"), ElementsAre("a", "", "b\rc"));
  EXPECT_THAT(lines_of("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
  EXPECT_THAT(lines_of("a"), ElementsAre("a"));
  EXPECT_THAT(lines_of(""), ElementsAre());
}

TEST_F(LineReaderTest, AByteOrderMarkIsNotText) {
  EXPECT_THAT(lines_of("\xEF\xBB\xBF"
                       "a\n\xEF\xBB\xBF"
                       "b"),
              ElementsAre("a",
                          "\xEF\xBB\xBF"
                          "b"));
  EXPECT_THAT(lines_of("\xEF\xBB\xBF"), ElementsAre());
}

TEST_F(LineReaderTest, LinesMayBeLongerThanABlock) {
  const std::string longest(5 << 20, 'x');
  const std::string block(1 << 18, 'y');
  EXPECT_THAT(lines_of("a\n" + longest + "\r\n" + block + "\n\xC3\xA9"), ElementsAre("a", longest, block, "\xC3\xA9"));
  std::string many;
  for (int i = 0; i < 300'000; ++i) many += std::to_string(i) + '\n';
  const auto lines = lines_of(many);
  ASSERT_EQ(lines.size(), 300'000U);
  for (std::size_t i = 0; i < lines.size(); ++i) ASSERT_EQ(lines[i], std::to_string(i));
}

TEST_F(LineReaderTest, APipeHasNoSize) {
  LineReader reader("/dev/null");
  std::string_view line;
  EXPECT_FALSE(reader.next(line));
  EXPECT_EQ(reader.bytes(), 0U);
}

TEST_F(LineReaderTest, Errors) {
  EXPECT_EQ(error("a\nb\n\xC3(\n"), "F, line 3: not UTF-8 at byte 0; convert it to UTF-8");
  EXPECT_EQ(error("\x1F\x8B\x08"), "F: gzip-compressed: decompress it first");
  EXPECT_EQ(tests::error_of([&] { LineReader reader(directory_ / "absent"); }),
            "cannot read " + (directory_ / "absent").string() + ": No such file or directory");
  EXPECT_THAT(tests::error_of([&] { LineReader reader(directory_.path()); }), EndsWith(": Is a directory"));
}

TEST_F(LineReaderTest, NamesThePlace) {
  lines_of("a\nb\n");
  LineReader reader(path_);
  std::string_view line;
  reader.next(line), reader.next(line);
  EXPECT_EQ(reader.location(), path_.string() + ", line 2");
  EXPECT_EQ(reader.location(1), path_.string() + ", line 1");
}

}  // namespace
}  // namespace mylos::data
