#include "data/text/json_documents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/text/read_documents.hpp"
#include "tests/support/paths.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;

class JsonDocumentsTest : public ::testing::Test {
 protected:
  std::vector<std::string> read(const std::string& bytes, const std::string& text_field = {}) {
    return tests::documents_in(directory_ / "games.jsonl", DocumentFormat::json_lines, bytes, text_field);
  }
  std::string error(const std::string& bytes, const std::string& text_field = {}) {
    const auto lines = read(bytes, text_field);
    return lines.size() == 1 && lines[0].starts_with("error: ") ? lines[0].substr(7) : "(no error)";
  }

  tests::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "games.jsonl";
};

TEST_F(JsonDocumentsTest, HaveOneField) {
  EXPECT_THAT(read("{\"text\": \"a \\u00e9\\n\"}\n{\"id\": 7, \"text\": \"\"}\n"), ElementsAre("1: a \u00e9\n", "2: "));
  EXPECT_THAT(read("{\"input_ids\": [5, 0, 2147483647]}\r\n{\"input_ids\": []}"),
              ElementsAre("1: [5 0 2147483647]", "2: []"));
  EXPECT_THAT(read("{\"Moves\": [\"e2e4\", \"e7e5\"], \"Result\": \"1-0\"}\n{\"Moves\": []}"),
              ElementsAre("1: e2e4 e7e5", "2: "));
}

TEST_F(JsonDocumentsTest, BlankLinesCountAsLinesOnly) {
  EXPECT_THAT(read("\n{\"text\": \"a\"}\n \t\r\n{\"text\": \"b\"}\n\n"), ElementsAre("2: a", "4: b"));
}

TEST_F(JsonDocumentsTest, TheFirstObjectDecidesForTheFile) {
  const std::string both = R"({"text": "a", "input_ids": [1], "Moves": ["x"]})";
  EXPECT_THAT(read(both), ElementsAre("1: [1]"));
  EXPECT_THAT(read(both, "text"), ElementsAre("1: a"));
  EXPECT_THAT(read(R"({"text": "a", "Moves": ["x"]})"), ElementsAre("1: a"));
  EXPECT_THAT(read(R"({"input_ids": [1], "body": "b"})", "body"), ElementsAre("1: b"));
  EXPECT_EQ(error("{\"text\": \"a\"}\n{\"input_ids\": [1]}\n"), "F, line 2: the key 'text' is missing");
  EXPECT_EQ(error("{\"input_ids\": [1]}\n\n{\"text\": \"a\"}\n"), "F, line 3: the key 'input_ids' is missing");
}

TEST_F(JsonDocumentsTest, ANamedFieldHasItsForm) {
  const std::string lists = R"({"text": "a", "input_ids": [1], "Moves": ["x", "y"]})";
  EXPECT_THAT(read(lists, "Moves"), ElementsAre("1: x y"));
  EXPECT_THAT(read(lists, "input_ids"), ElementsAre("1: [1]"));
  EXPECT_THAT(read(R"({"text": "a", "Moves": "x y"})", "Moves"), ElementsAre("1: x y"));
  EXPECT_THAT(read(R"({"prompt": "a", "completion": "b"})", "prompt"), ElementsAre("1: a"));
  EXPECT_THAT(error(R"({"text": "a", "messages": [{"role": "user"}]})", "messages"),
              ::testing::HasSubstr("has no chat_template"));
  EXPECT_EQ(error(R"({"body": ["x"]})", "body"), "F, line 1: body: expected string, found list");
  EXPECT_THAT(read(R"({"text": "a", "prompt": "b"})"), ElementsAre("1: a"));
}

TEST_F(JsonDocumentsTest, LabelsSayWhatIsSupervised) {
  tests::write_file(path_, "{\"input_ids\": [5, 6, 7], \"labels\": [-100, 6, -100]}");
  JsonDocuments documents(path_, "");
  Document document;
  ASSERT_TRUE(documents.next(document));
  EXPECT_THAT(document.supervised, ElementsAre(0, 1, 0));
  EXPECT_TRUE(document.begins && document.ends);
  const std::string first = "{\"input_ids\": [5], \"labels\": [5]}\n";
  EXPECT_EQ(error(first + "{\"input_ids\": [5]}"), "F, line 2: the key 'labels' is missing");
  EXPECT_EQ(error("{\"input_ids\": [5]}\n" + first), "F, line 2: labels: the first line has no labels");
  EXPECT_EQ(error("{\"input_ids\": [5, 6], \"labels\": [5]}"), "F, line 1: labels: 1 labels for 2 tokens of input_ids");
  EXPECT_EQ(error("{\"input_ids\": [5], \"labels\": [6]}"),
            "F, line 1: labels[0]: 6 is neither -100 nor the token itself, 5");
  EXPECT_EQ(error("{\"input_ids\": [5], \"labels\": [\"x\"]}"),
            "F, line 1: labels[0]: \"x\" is neither -100 nor the token itself, 5");
  EXPECT_EQ(error("{\"input_ids\": [5], \"labels\": 5}"), "F, line 1: labels: expected list, found number");
}

TEST_F(JsonDocumentsTest, ACompletionIsSupervised) {
  const tests::TemporaryDirectory model;
  tests::write_file(model / "tokenizer_config.json", R"({"eos_token": {"content": "</s>"}})");
  tests::write_file(path_, R"({"prompt": "é:", "completion": " ab"})");
  const auto read_with = [&](std::optional<LossOn> loss_on, bool ends) {
    Document document;
    JsonDocuments(path_, "", {loss_on, model.path(), ends}).next(document);
    return document;
  };
  const Document whole = read_with({}, true);
  EXPECT_EQ(whole.text, "é: ab</s>");
  EXPECT_TRUE(whole.ends && !whole.begins);
  EXPECT_THAT(whole.supervised_text.value(), ElementsAre(CodePointRange{2, 9}));
  EXPECT_EQ(read_with({}, false).text, "é: ab");
  EXPECT_FALSE(read_with(LossOn::all, true).supervised_text.has_value());
  EXPECT_THAT(tests::error_of([&] { read_with(LossOn::assistant, true); }),
              ::testing::EndsWith("games.jsonl has no messages; leave it out"));
  EXPECT_EQ(error(R"({"prompt": "a"})"), "F, line 1: the key 'completion' is missing");
  EXPECT_EQ(error(R"({"prompt": 5, "completion": "a"})"), "F, line 1: prompt: expected string, found number");
  EXPECT_EQ(error(R"({"prompt": "a", "completion": [{"role": "assistant"}]})"),
            "F, line 1: completion: expected string, found list; put the messages of prompt and completion into one "
            "list, 'messages'");
  EXPECT_THAT(tests::error_of([&] {
                tests::write_file(path_, R"({"body": "a"})");
                Document document;
                JsonDocuments(path_, "body", {LossOn::assistant, model.path(), true}).next(document);
              }),
              ::testing::EndsWith("games.jsonl has no messages; leave it out"));
  tests::write_file(path_, R"({"text": "a"})");
  EXPECT_THAT(tests::error_of([&] { read_with(LossOn::completion, true); }),
              ::testing::EndsWith("games.jsonl has no prompt and completion, and no messages; leave it out"));
}

TEST_F(JsonDocumentsTest, ConversationsNeedATemplateAndRoles) {
  const std::string row = R"({"messages": [{"role": "user", "content": "a"}]})";
  EXPECT_THAT(error(row), ::testing::HasSubstr("F, line 1: messages: "));
  EXPECT_THAT(error(row), ::testing::HasSubstr("has no chat_template, neither in tokenizer_config.json nor as"));
  EXPECT_EQ(error(R"({"messages": []})"), "F, line 1: messages: a conversation has no messages");
  EXPECT_EQ(error(R"({"messages": 5})"), "F, line 1: messages: expected list, found number");
  EXPECT_EQ(error(R"({"messages": [5]})"), "F, line 1: messages[0]: expected object, found number");
  EXPECT_EQ(error(R"({"messages": [{"content": "a"}]})"), "F, line 1: messages[0]: the key 'role' is missing");
}

TEST_F(JsonDocumentsTest, ABrokenLineIsNamed) {
  EXPECT_EQ(error("{\"body\": \"a\"}"),
            "F, line 1: none of the keys 'text', 'messages', 'prompt', 'input_ids' and 'Moves'; give the one with the "
            "text by "
            "`text-field`");
  EXPECT_EQ(error("{\"text\": \"a\"}", "body"), "F, line 1: the key 'body' is missing");
  EXPECT_EQ(error("{\"text\": \"a\"}\n{\"text\": 5}\n"), "F, line 2: text: expected string, found number");
  EXPECT_EQ(error("{\"text\": null}"), "F, line 1: text: expected string, found null");
  EXPECT_EQ(error("\n\n{\"Moves\": \"e2e4\"}"), "F, line 3: Moves: expected a list of strings");
  EXPECT_EQ(error("{\"Moves\": [\"e2e4\", 5]}"), "F, line 1: Moves[1]: expected string, found number");
  EXPECT_EQ(error("{\"input_ids\": 5}"), "F, line 1: input_ids: expected list, found number");
  EXPECT_EQ(error("{\"input_ids\": [5, \"6\"]}"), "F, line 1: input_ids[1]: expected number, found string");
  EXPECT_EQ(error("{\"input_ids\": [-1]}"),
            "F, line 1: input_ids[0]: expected a whole number that is not negative, found -1");
  EXPECT_EQ(error("{\"input_ids\": [1.5]}"),
            "F, line 1: input_ids[0]: expected a whole number that is not negative, found 1.5");
  EXPECT_EQ(error("{\"input_ids\": [2147483648]}"), "F, line 1: input_ids[0]: 2147483648 is not a token id");
  EXPECT_EQ(error("[1]"), "F, line 1: expected object, found list");
  EXPECT_EQ(error("{\"text\": \"a\"}\n[1]"), "F, line 2: expected object, found list");
}

TEST_F(JsonDocumentsTest, WhatIsNoJsonIsNamedWithItsColumn) {
  const auto truncated = error("{\"text\": \"a\"}\n{\"text\": ");
  EXPECT_EQ(truncated, "F, line 2: not JSON at column 10: the text ends too early; is the file truncated?");
  EXPECT_THAT(error("x"), ::testing::StartsWith("F, line 1: not JSON at column 1: "));
  EXPECT_EQ(error("{\"text\": " + std::string(100, '[') + "}"), "F, line 1: nests deeper than 64 levels at column 73");
  EXPECT_EQ(error("{\"text\": \"\xFF\"}"), "F, line 1: not UTF-8 at byte 10; convert it to UTF-8");
}

TEST(JsonDocumentsOfChess, AreLaionsRows) {
  const auto path = tests::shared_data() / "chess" / "games-dev.jsonl";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there (MYLOS_DATA)";
  JsonDocuments reader(path, {});
  const auto documents = tests::describe_documents(reader);
  ASSERT_EQ(documents.size(), 200U);
  EXPECT_THAT(documents[0], ::testing::StartsWith("1: e2e4 e7e5 g1f3 b8c6 f1b5 "));
}

}  // namespace
}  // namespace mylos::data
