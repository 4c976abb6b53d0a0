#include "data/text/chat_format.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files/json.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::vector<unsigned>> spans_of(const SupervisedText& text) {
  std::vector<std::vector<unsigned>> spans;
  for (const CodePointRange& part : text.supervised) spans.push_back({part.begin, part.end});
  return spans;
}

/// Compares the conversations of a folder of the reference.
void expect_recorded(const ChatFormat& format, const fs::path& expected) {
  for (const nlohmann::json& row : tests::json_lines(expected)) {
    const OrderedJson given = {{"messages", OrderedJson(row["messages"])}};
    if (row.contains("error")) {
      EXPECT_THAT(tests::error_of([&] { format.conversation(given, LossOn::assistant, "F, line 1"); }),
                  EndsWith("the template raises: " + row["error"].get<std::string>()));
      continue;
    }
    const SupervisedText text = format.conversation(given, LossOn::assistant, "F, line 1");
    EXPECT_EQ(text.text, row["text"].get<std::string>());
    EXPECT_EQ(nlohmann::json(spans_of(text)), row["spans"]) << text.text;
    OrderedJson asked = given;
    asked["messages"].erase(asked["messages"].size() - 1);
    if (!row.contains("prompt")) continue;
    EXPECT_EQ(format.prompt(asked, "F, line 1"), row["prompt"].get<std::string>());
  }
}

TEST(ChatFormat, EqualsRecordedConversationsWithAndWithoutGenerationBlocks) {
  const fs::path root = tests::shared_reference() / "sft";
  if (!fs::is_directory(root)) GTEST_SKIP() << root << " is not there";
  std::size_t folders = 0;
  for (const auto& entry : fs::directory_iterator(root)) {
    const fs::path expected = entry.path() / "chat-expected.jsonl";
    if (!fs::exists(expected)) continue;
    SCOPED_TRACE(entry.path());
    ++folders;
    expect_recorded(ChatFormat(entry.path()), expected);
    const tests::TemporaryDirectory with_blocks;
    fs::copy_file(entry.path() / "tokenizer_config.json", with_blocks / "tokenizer_config.json");
    fs::copy_file(entry.path() / "generation.jinja", with_blocks / "chat_template.jinja");
    expect_recorded(ChatFormat(with_blocks.path()), expected);
  }
  EXPECT_GE(folders, 3U);
}

class SmallChats : public ::testing::Test {
 protected:
  /// Returns the text with the supervised parts in brackets.
  std::string marked(const std::string& source, const std::string& row, LossOn loss_on = LossOn::assistant) {
    tests::write_file(directory_ / "chat_template.jinja", source);
    const SupervisedText text =
        ChatFormat(directory_.path()).conversation(try_parse_ordered_json(row), loss_on, "F, line 1");
    std::string result;
    unsigned at = 0;
    for (const CodePointRange& part : text.supervised) {
      result += std::string(slice_code_points(text.text, {at, part.begin})) + "[" +
                std::string(slice_code_points(text.text, part)) + "]";
      at = part.end;
    }
    return result + std::string(slice_code_points(text.text, {at, 1000}));
  }
  std::string error(const std::string& source, const std::string& row = chat_) {
    return tests::error_of([&] { marked(source, row); });
  }

  static constexpr const char* chat_ =
      R"({"messages": [{"role": "user", "content": "é"}, {"role": "assistant", "content": "b"},)"
      R"( {"role": "user", "content": "c"}, {"role": "assistant", "content": "d "}]})";
  static constexpr const char* plain_ =
      "{% for m in messages %}{{ m.role[0] }}:{{ m.content }};\n{% endfor %}{% if add_generation_prompt %}a:{% endif "
      "%}";
  tests::TemporaryDirectory directory_;
};

TEST_F(SmallChats, ChooseWhatIsSupervised) {
  EXPECT_EQ(marked(plain_, chat_), "u:é;\na:[b;]\nu:c;\na:[d ;]\n");
  EXPECT_EQ(marked(plain_, chat_, LossOn::completion), "u:é;\na:b;\nu:c;\na:[d ;]\n");
  EXPECT_EQ(marked(plain_, chat_, LossOn::all), "[u:é;\na:b;\nu:c;\na:d ;\n]");
  EXPECT_EQ(marked(plain_, R"({"messages": [{"role": "user", "content": "x"}]})"), "u:x;\n");
  const std::string blocks =
      "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% else "
      "%}"
      "{{ m.content }}{% endif %}{% endfor %}";
  EXPECT_EQ(marked(blocks, chat_), "é[b]c[d ]");
  EXPECT_EQ(marked(blocks, chat_, LossOn::completion), "ébc[d ]");
}

TEST_F(SmallChats, HaveTools) {
  const std::string row = R"({"messages": [{"role": "user"}], "tools": [{"z": 1, "a": "é"}]})";
  EXPECT_EQ(marked("{{ tools|tojson }}{{ documents is none }}", row), R"([{"z": 1, "a": "é"}]True)");
  EXPECT_EQ(marked("{{ tools is none }}", chat_), "True");
}

/// As in transformers, which takes "tool_use" of a list for conversations with tools.
TEST_F(SmallChats, WithToolsMayHaveATemplateOfTheirOwn) {
  const std::string row = R"({"messages": [{"role": "user"}], "tools": )";
  const auto text = [&](const std::string& tools) {
    return ChatFormat(directory_.path()).prompt(try_parse_ordered_json(row + tools + "}"), "F");
  };
  const auto list = [](const char* name) {
    return fmt::format(
        R"({{"chat_template": [{{"name": "default", "template": "d"}}, {{"name": "{}", "template": "t"}}]}})", name);
  };
  tests::write_file(directory_ / "tokenizer_config.json", list("rag"));
  EXPECT_EQ(text("[]"), "d");
  const auto checksum = ChatFormat(directory_.path()).checksum();
  tests::write_file(directory_ / "tokenizer_config.json", list("tool_use"));
  EXPECT_EQ(text("[]"), "t");
  EXPECT_EQ(text("null"), "d");
  EXPECT_NE(ChatFormat(directory_.path()).checksum(), checksum);
  tests::write_file(directory_ / "chat_template.jinja", "j");
  EXPECT_EQ(text("[]"), "j");
  fs::create_directory(directory_ / "additional_chat_templates");
  tests::write_file(directory_ / "additional_chat_templates/tool_use.jinja", "t");
  EXPECT_EQ(text("null"), "j");
  EXPECT_THAT(tests::error_of([&] { text("[]"); }),
              EndsWith("additional_chat_templates is not supported; leave tools out, or move its templates and "
                       "chat_template.jinja into a list, chat_template of tokenizer_config.json"));
}

/// Rows of prompt and completion need only the end.
TEST_F(SmallChats, ATemplateThatIsNotSupportedIsRefusedWhenItIsNeeded) {
  tests::write_file(directory_ / "tokenizer_config.json", R"({"chat_template": "{% b %}", "eos_token": "E"})");
  const ChatFormat format(directory_.path());
  EXPECT_EQ(format.end_text(), "E");
  EXPECT_TRUE(format.checksum());
  EXPECT_THAT(tests::error_of([&] { format.prompt(try_parse_ordered_json(chat_), "F"); }),
              EndsWith("tokenizer_config.json: chat_template, line 1: the tag 'b' is not supported"));
}

TEST_F(SmallChats, RefuseTemplatesWhoseTurnsDoNotFollowEachOther) {
  EXPECT_THAT(error("{{ messages|length }}"),
              HasSubstr("F, line 1: messages: what the template writes of messages[1] "));
  // drops what earlier turns said
  EXPECT_THAT(error("{% for m in messages %}{{ m.content if loop.last else '' }}{% endfor %}"),
              EndsWith("or changes with those after it; put it into a generation block"));
}

TEST_F(SmallChats, MayBeginWithTheAssistantIfTheTemplateAllowsIt) {
  const std::string row = R"({"messages": [{"role": "assistant", "content": "b"}]})";
  EXPECT_EQ(marked(plain_, row), "a:[b;]\n");
  const std::string asks = "{{ messages[0].role }}" + std::string(plain_);
  EXPECT_THAT(error(asks, row),
              EndsWith("F, line 1: messages: the conversation begins with the assistant, and the template needs a "
                       "message before that; add a user message, or use `loss-on all`"));
  EXPECT_EQ(marked(asks, row, LossOn::all), "[assistanta:b;\n]");
  EXPECT_THAT(error("{{ messages[0].role }}{{ messages[2].role if messages|length == 1 }}"),
              EndsWith("line 1: an undefined value has no member 'role'"));
}

TEST_F(SmallChats, HaveOneTime) {
  tests::write_file(directory_ / "chat_template.jinja", "{{ strftime_now('%a %d %b %Y %H:%M:%S') }}");
  const auto text = [&](const std::string& time) {
    return ChatFormat(directory_.path(), time).prompt(try_parse_ordered_json(chat_), "F");
  };
  EXPECT_EQ(text("2026-07-26 01:02:03"), "Sun 26 Jul 2026 01:02:03");
  EXPECT_GE(text("").substr(11, 4), "2026");
  EXPECT_EQ(text("").size(), 24U);
  for (const char* wrong : {"2026-07-26", "2026-07-26 01:02:03 Z", "x"}) {
    EXPECT_EQ(tests::error_of([&] { text(wrong); }),
              "the chat-time of the run is \"" + std::string(wrong) + "\", and not a time such as 2026-11-30 21:25:29");
  }
}

TEST_F(SmallChats, ComeFromAFileOrTheConfiguration) {
  const auto text = [&](const std::string& config) {
    tests::write_file(directory_ / "tokenizer_config.json", config);
    return ChatFormat(directory_.path()).prompt(try_parse_ordered_json(chat_), "F");
  };
  EXPECT_EQ(text(R"({"chat_template": "a{{ eos_token }}{{ pad_token is defined }}", "eos_token": {"content": "E"}})"),
            "aEFalse");
  EXPECT_EQ(text(R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]})"),
            "d");
  EXPECT_THAT(tests::error_of([&] { text(R"({"chat_template": [{"name": "rag", "template": "t"}]})"); }),
              EndsWith("tokenizer_config.json: chat_template: none of the templates is named \"default\""));
  EXPECT_THAT(tests::error_of([&] { text(R"({"chat_template": "a\n{% b %}"})"); }),
              EndsWith("tokenizer_config.json: chat_template, line 2: the tag 'b' is not supported"));
  EXPECT_THAT(tests::error_of([&] { text(R"({"chat_template": 5})"); }),
              EndsWith("tokenizer_config.json: chat_template: expected string or list, found number"));
  EXPECT_THAT(tests::error_of([&] { text("{}"); }), HasSubstr("has no chat_template"));
  tests::write_file(directory_ / "chat_template.jinja", "from the file");
  EXPECT_EQ(text(R"({"chat_template": "from the configuration"})"), "from the file");
}

}  // namespace
}  // namespace mylos::data
