#include "data/tokenizer/json/json_tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

nlohmann::json offsets_of(const Tokens& tokens) {
  auto offsets = nlohmann::json::array();
  for (const CodePointRange& range : tokens.offsets) offsets.push_back({range.begin, range.end});
  return offsets;
}

/// Compares a recorded line; each of its fields is what `tokenizers` gives for its text.
void compare_line(const JsonTokenizer& tokenizer, const nlohmann::json& row) {
  const auto text = row.at("text").get<std::string>();
  const Tokens tokens = tokenizer.tokenize(text);
  EXPECT_EQ(nlohmann::json(tokens.ids), row.at("ids")) << row.dump();
  EXPECT_EQ(offsets_of(tokens), row.at("offsets")) << row.dump();
  const Tokens special = tokenizer.with_special(text);
  EXPECT_EQ(nlohmann::json(special.ids), row.at("special")) << row.dump();
  EXPECT_EQ(special.offsets.size(), special.ids.size());
  const auto decoded = row.value("decoded", text);
  EXPECT_EQ(tokenizer.decode(tokens.ids, false), decoded) << row.dump();
  EXPECT_EQ(tokenizer.decode(special.ids), row.value("skipped", decoded)) << row.dump();
}

/// Compares two texts in the layout of the post-processor.
void compare_pair(const JsonTokenizer& tokenizer, const nlohmann::json& row) {
  const Tokens texts[] = {tokenizer.tokenize(row.at("text").get<std::string>()),
                          tokenizer.tokenize(row.at("pair").get<std::string>())};
  std::vector<TokenId> ids;
  std::vector<std::int32_t> types;
  ASSERT_NE(tokenizer.pair_template(), nullptr);
  for (const TemplatePart& part : *tokenizer.pair_template()) {
    const auto& added = part.ids.empty() ? texts[part.sequence].ids : part.ids;
    ids.insert(ids.end(), added.begin(), added.end());
    types.resize(ids.size(), part.type);
  }
  EXPECT_EQ(nlohmann::json(ids), row.at("ids")) << row.dump();
  EXPECT_EQ(nlohmann::json(types), row.at("type_ids")) << row.dump();
}

std::vector<std::filesystem::path> recorded_directories() {
  std::vector<std::filesystem::path> found;
  const auto directory = tests::shared_reference() / "tokenizers";
  if (!std::filesystem::exists(directory)) return found;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (std::filesystem::exists(entry.path() / "tokens.jsonl")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(JsonTokenizerRecorded, LinesAreHuggingFaces) {
  if (recorded_directories().empty()) GTEST_SKIP() << "no recorded tokenizers (MYLOS_REFERENCE)";
  for (const auto& directory : recorded_directories()) {
    SCOPED_TRACE(directory.filename().string());
    const auto tokenizer = JsonTokenizer::load(FileReader(), directory / "tokenizer.json");
    for (const auto& row : tests::json_lines(directory / "tokens.jsonl")) compare_line(tokenizer, row);
  }
}

TEST(JsonTokenizerRecorded, PairsAreHuggingFaces) {
  if (recorded_directories().empty()) GTEST_SKIP() << "no recorded tokenizers (MYLOS_REFERENCE)";
  for (const auto& directory : recorded_directories()) {
    if (!std::filesystem::exists(directory / "pairs.jsonl")) continue;
    SCOPED_TRACE(directory.filename().string());
    const auto tokenizer = JsonTokenizer::load(FileReader(), directory / "tokenizer.json");
    for (const auto& row : tests::json_lines(directory / "pairs.jsonl")) compare_pair(tokenizer, row);
  }
}

}  // namespace
}  // namespace mylos::data
