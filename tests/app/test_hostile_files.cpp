#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

/// Files that somebody else wrote: JSON that nests so deeply that a recursive reader would exhaust the stack.
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

/// A safetensors file of one number whose shape is `shape`.
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
  Words with_config = train_words(), watch = {"watch", run_, "--once"};
  with_config.insert(with_config.end(), {"--config", directory_ / "options.json"});
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

}  // namespace
}  // namespace mylos::tests
