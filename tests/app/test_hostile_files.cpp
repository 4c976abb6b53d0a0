#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

/// Files from untrusted sources: JSON nested so deeply that a recursive parser would exhaust the stack, and text with
/// escape sequences for the terminal.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr const char* run_text = R"({"resolved": {"steps": 100}, "state": {"finished": false}})";

class HostileFiles : public TinyRun {
 protected:
  Words train_words() const {
    return {"train",   "--model", model_,         "--train", train_,         "--output", run_,
            "--steps", "1",       "--max-length", "60",      "--doc-stride", "20"};
  }
};

std::string deep_list() { return std::string(100'000, '[') + std::string(100'000, ']'); }

/// Returns a safetensors file of one number with the shape `shape`.
std::string weights_with(const std::string& shape) {
  const std::string header = R"({"a": {"dtype": "F32", "shape": )" + shape + R"(, "data_offsets": [0, 4]}})";
  std::string length;
  for (std::size_t rest = header.size(), i = 0; i < 8; ++i, rest >>= 8) length += static_cast<char>(rest & 0xff);
  return length + header + std::string(4, '\0');
}

TEST_F(HostileFiles, DeepJsonIsAnError) {
  const std::string deep = deep_list();
  struct Row {
    fs::path file;
    std::string text;
    Words words;
    std::string message = "nests deeper than 64 levels at line 1, column ";
    int exit_code = 1;
  };
  const Words with_config = joined(train_words(), {"--config", directory_ / "options.json"});
  const Words watch = {"watch", run_, "--once"};
  const std::vector<Row> rows = {
      {model_ / "config.json", R"({"model_type": )" + deep + "}", train_words()},
      {model_ / "tokenizer_config.json", R"({"do_lower_case": )" + deep + "}", train_words()},
      {model_ / "model.safetensors", weights_with(deep), train_words()},
      {train_, R"({"data": )" + deep + "}", train_words()},
      {directory_ / "options.json", R"({"seed": )" + deep + "}", with_config, "not JSON, or nested too deeply", 2},
      {run_ / "run.json", R"({"resolved": )" + deep + "}", watch}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.file);
    const std::string before = fs::exists(row.file) ? read_file(row.file) : "";
    write_file(row.file, row.text);
    const ProgramRun run = run_mylos(row.words);
    EXPECT_EQ(run.exit_code, row.exit_code);
    ASSERT_EQ(run.error_lines().size(), 1u) << run.errors;
    EXPECT_THAT(run.error_lines()[0], HasSubstr(row.file.string()));
    EXPECT_THAT(run.error_lines()[0], HasSubstr(row.message));
    before.empty() ? void(fs::remove(row.file)) : write_file(row.file, before);
  }
}

TEST_F(HostileFiles, DeepLinesOfMetricsAreLeftOut) {
  write_file(run_ / "run.json", run_text);
  const std::string row = R"({"step": 2, "tokens": 10, "seconds": 2.0, "loss": 3.0, "validation_loss": 1.5)";
  write_file(run_ / "metrics.jsonl", row + "}\n" + row + R"(, "best": )" + deep_list() + "}\n");
  for (const char* form : {"--once", "--json"}) {
    const ProgramRun seen = run_mylos({"watch", run_, form});
    EXPECT_EQ(seen.exit_code, 0) << seen.errors;
    EXPECT_LT(seen.output.size(), 10'000u);
  }
  EXPECT_EQ(run_mylos({"report", run_, "--output", directory_ / "page.html"}).exit_code, 0);
  EXPECT_THAT(read_file(directory_ / "page.html"), HasSubstr("1 line of metrics.jsonl could not be read"));
}

/// Writes to the clipboard of some terminals (OSC 52); a C1 control that starts a colour follows.
constexpr const char* escapes_text =
    "x\x1b]52;c;aGk=\x07\xc2\x9b"
    "31m";

void expect_plain(const std::string& text) {
  for (const char* control : {"\x1b", "\x07", "\xc2\x9b"}) EXPECT_THAT(text, testing::Not(HasSubstr(control)));
}

TEST_F(HostileFiles, EscapesInARunDoNotReachTheTerminal) {
  const nlohmann::json resolved = {{"steps", 100}, {"mode", escapes_text}};
  write_file(run_ / "run.json", nlohmann::json{{"resolved", resolved}, {"precision", escapes_text}}.dump());
  const nlohmann::json gpu = {{"index", 0}, {"name", escapes_text}};
  write_file(run_ / "gpus" / "n1.jsonl", nlohmann::json{{"time", 17}, {"gpus", {gpu}}}.dump() + "\n");
  const nlohmann::json row = {{"step", 2}, {"validation_loss", 1.5}, {"best", escapes_text}};
  write_file(run_ / "metrics.jsonl", row.dump() + "\n");
  const ProgramRun seen = run_mylos({"watch", run_, "--once"});
  EXPECT_EQ(seen.exit_code, 0) << seen.errors;
  EXPECT_THAT(seen.output, HasSubstr("x]52;c;aGk=31m"));
  expect_plain(seen.output);
  const ProgramRun as_json = run_mylos({"watch", run_, "--json"});
  expect_plain(as_json.output);
  EXPECT_EQ(nlohmann::json::parse(as_json.output)["evaluation"]["best"], escapes_text) << "values stay what they are";
}

TEST_F(HostileFiles, EscapesInMessagesDoNotReachTheTerminal) {
  const std::string name = directory_ / escapes_text;
  for (const Words& words : {Words{"report", name}, Words{"watch", name}, Words{"checkpoint", "show", name}}) {
    const ProgramRun run = run_mylos(words);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_THAT(run.errors, HasSubstr("]52;c;aGk="));
    expect_plain(run.errors);
  }
  write_file(run_ / "run.json", std::string("{\"a\": \"") + escapes_text + "\xc2\x9b");
  expect_plain(run_mylos({"report", run_, "--output", directory_ / "page.html"}).errors);
}

TEST_F(HostileFiles, EscapesInTheBannerDoNotReachTheTerminal) {
  const fs::path model = directory_ / escapes_text, questions = directory_ / (std::string("q") + escapes_text);
  fs::rename(model_, model);
  fs::rename(train_, questions);
  const ProgramRun run = run_mylos({"train", "--model", model, "--train", questions, "--output", run_, "--steps", "1",
                                    "--max-length", "60", "--doc-stride", "20", "--dry-run"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("\nmodel    " + directory_.path().string() + "/x]52;c;aGk=31m: 2 layers"));
  EXPECT_THAT(run.errors, HasSubstr("\ntrain    " + directory_.path().string() + "/qx]52;c;aGk=31m: 12 questions"));
  expect_plain(run.errors);
}

TEST_F(HostileFiles, EscapesInAQuestionDoNotReachTheTerminal) {
  write_file(directory_ / "context", "what is red in here\n");
  const std::string question = std::string("what is red") + escapes_text;
  const ProgramRun run = run_mylos({"ask", "--model", model_, "--context", directory_ / "context", question});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("what is redx]52;c;aGk=31m\n"));
  expect_plain(run.output);
}

}  // namespace
}  // namespace mylos::tests
