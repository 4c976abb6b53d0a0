#include "tests/app/resumed_runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Resumption of runs whose data files were edited, moved or reformatted.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class ResumedData : public ResumedRuns {
 protected:
  void SetUp() override {
    ResumedRuns::SetUp();
    if (IsSkipped()) return;
    write_file(dev_, tiny_questions());
    write_file(order_, order_text({"q01", "q02", "q03", "q11"}) + order_text({"q12", "q13", "q21", "q22"}));
    ASSERT_EQ(start().exit_code, 0);
    interrupt(run_, 4);
  }

  static std::string order_text(const Words& ids) {
    json step = json::array();
    for (const std::string& id : ids) step.push_back({id, 0});
    return step.dump() + "\n";
  }
  ProgramRun start(const Words& more = {}) const {
    Words all = {"--dev", dev_, "--order", order_, "--checkpoint-every", "1", "--keep", "20"};
    all.insert(all.end(), more.begin(), more.end());
    return train(run_, all);
  }
  /// Expects that the file is rejected with `text`, and accepted again with its old content.
  void expect_noticed(const fs::path& file, const std::string& text) const {
    const std::string before = read_file(file), metrics_before = read_file(run_ / "metrics.jsonl");
    write_file(file, text);
    expect_refused(start(), file.string() + ": its data differ from those that the run of ");
    EXPECT_EQ(read_file(run_ / "metrics.jsonl"), metrics_before);
    write_file(file, before);
  }
  static std::string replaced(std::string text, const std::string& what, const std::string& with) {
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), with);
  }

  fs::path order_ = directory_ / "order.jsonl";
};

TEST_F(ResumedData, EditedInPlaceIsRefused) {
  const std::string questions = tiny_questions();
  expect_noticed(train_, replaced(questions, "the red fox runs far", "the red fox digs far"));
  expect_noticed(dev_, replaced(questions, "the red fox runs far", "the red fox runs off"));
  json answered = json::parse(questions);  // changes no window, but changes scores
  answered["data"][0]["paragraphs"][0]["qas"][0]["answers"].push_back({{"text", "fox"}, {"answer_start", 8}});
  expect_noticed(dev_, answered.dump());
  expect_noticed(order_, order_text({"q12", "q13", "q21", "q22"}) + order_text({"q01", "q02", "q03", "q11"}));
  const ProgramRun run = start();
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("goes on after step 4, from "));
}

TEST_F(ResumedData, OfAnotherRunIsComparedToo) {
  write_file(train_, replaced(tiny_questions(), "stars burn gas", "stars turn gas"));
  expect_refused(train(directory_ / "other", {"--dev", dev_, "--order", order_, "--resume", run_}),
                 train_.string() + ": its data differ from those that the run of ");
  EXPECT_FALSE(fs::exists(directory_ / "other" / "run.json"));
}

TEST_F(ResumedData, LaidOutAnewOrPreparedIsTheSame) {
  const fs::path moved = directory_ / "moved.json", features = directory_ / "features.h5";
  write_file(moved, json::parse(tiny_questions()).dump(4));
  ASSERT_EQ(run_mylos({"prepare", "--model", model_, "--data", dev_, "--output", features, "--max-length", "60",
                       "--doc-stride", "20"})
                .exit_code,
            0);
  write_file(order_, replaced(read_file(order_), ",0],", " ,  0],"));
  const ProgramRun run = start({"--train", moved, "--dev", features});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("goes on after step 4, from "));
  interrupt(run_, 4);
  expect_refused(train(run_, {"--dev", dev_}), "order " + order_.string() + ", now unset");
}

}  // namespace
}  // namespace mylos::tests
