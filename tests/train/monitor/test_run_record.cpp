#include "train/monitor/run_record.hpp"

#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <vector>

namespace mylos::train {
namespace {

class RunFiles : public testing::Test {
 protected:
  void SetUp() override { tests::write_file(directory_ / "run.json", R"({"resolved": {"steps": 1000}})"); }
  void append(const std::string& text) const { std::ofstream(metrics_, std::ios::app) << text; }
  static std::string row(std::size_t step) {
    return R"({"step": )" + std::to_string(step) + R"(, "tokens": 10, "loss": )" + std::to_string(step) + "}\n";
  }

  tests::TemporaryDirectory directory_;
  std::filesystem::path metrics_ = directory_ / "metrics.jsonl";
};

TEST_F(RunFiles, AreFollowedWhileTheyGrow) {
  RunFollower follower(directory_.path());
  EXPECT_FALSE(follower.update().has_metrics);
  append(row(1) + R"({"step": 2, "to)");
  EXPECT_EQ(follower.update().done_steps(), 1u);
  EXPECT_EQ(follower.update().unreadable, 1u);
  append(R"(kens": 10})"
         "\n" +
         row(3));
  const RunRecord& record = follower.update();
  EXPECT_EQ(record.steps.size(), 3u);
  EXPECT_EQ(record.unreadable, 0u);
}

TEST_F(RunFiles, ALastLineWithoutItsEndIsReadOnce) {
  RunFollower follower(directory_.path());
  append(row(1) + R"({"step": 2, "tokens": 10})");
  EXPECT_EQ(follower.update().steps.size(), 2u);
  append("\n" + row(3));
  EXPECT_EQ(follower.update().steps.size(), 3u);
  EXPECT_EQ(follower.update().unreadable, 0u);
}

TEST_F(RunFiles, AreReadAnewWhereAStartCutThem) {
  RunFollower follower(directory_.path());
  append(row(1) + row(2) + "none\n");
  EXPECT_EQ(follower.update().unreadable, 1u);
  tests::write_file(directory_ / "cut", row(1) + row(2) + row(3) + row(4));  // longer than the part that was read
  std::filesystem::rename(directory_ / "cut", metrics_);
  const RunRecord& record = follower.update();
  EXPECT_EQ(record.steps.size(), 4u);
  EXPECT_EQ(record.unreadable, 0u);
}

TEST_F(RunFiles, SayWhichMetricsTheirTaskHas) {
  EXPECT_EQ(read_run(directory_.path()).metric_kinds().size(), 3u) << "a version that listed none";
  const std::vector<MetricKind> kinds = {{"loss", "Loss", "nats", false}, {"accuracy", "Accuracy", "%", true}};
  const nlohmann::ordered_json run = {{"resolved", {{metrics_key, to_json(kinds)}}}};
  tests::write_file(directory_ / "run.json", run.dump());
  const std::vector<MetricKind> read = read_run(directory_.path()).metric_kinds();
  ASSERT_EQ(read.size(), 2u);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(read[i].name, kinds[i].name);
    EXPECT_EQ(read[i].title, kinds[i].title);
    EXPECT_EQ(read[i].unit, kinds[i].unit);
    EXPECT_EQ(read[i].larger_is_better, kinds[i].larger_is_better);
  }
}

TEST_F(RunFiles, SayWhatTheirStepsCount) {
  EXPECT_EQ(read_run(directory_.path()).work(), "tokens") << "a version that knew nothing else";
  tests::write_file(directory_ / "run.json", R"({"resolved": {"counts": "images"}})");
  EXPECT_EQ(read_run(directory_.path()).work(), "images");
  EXPECT_TRUE(read_run(directory_.path()).metric_kinds().empty()) << "nothing is evaluated";
  for (const char* text : {R"({"resolved": {"counts": 3}})", R"({"resolved": {"counts": "<b>"}})",
                           R"({"resolved": {"counts": ""}})", R"({"resolved": []})"}) {
    tests::write_file(directory_ / "run.json", text);
    EXPECT_EQ(read_run(directory_.path()).work(), "tokens") << text;
  }
}

TEST_F(RunFiles, MetricsThatAreNoneAreLeftOut) {
  tests::write_file(
      directory_ / "run.json",
      R"({"resolved": {"metrics": [3, null, {}, {"name": 1}, {"name": "top5", "larger_is_better": []}]}})");
  const std::vector<MetricKind> read = read_run(directory_.path()).metric_kinds();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].name, "top5");
  EXPECT_TRUE(read[0].larger_is_better);
}

TEST_F(RunFiles, RowsOfNoStepOfTheRunAreUnreadable) {
  append(row(1000) + row(1001) + row(18446744073709551615u));
  const RunRecord record = read_run(directory_.path());
  EXPECT_EQ(record.done_steps(), 1000u);
  EXPECT_EQ(record.unreadable, 2u);
}

TEST_F(RunFiles, OnlyTheLastRowsAreKeptWhereThatIsEnough) {
  RunFollower follower(directory_.path(), 0);
  for (std::size_t step = 1; step <= 500; ++step) append(row(step));
  const RunRecord& record = follower.update();
  EXPECT_LE(record.steps.size(), 2 * RunRecord::recent_steps);
  EXPECT_EQ(record.done_steps(), 500u);
  EXPECT_EQ(record.recent_loss(), 475.5);
}

TEST_F(RunFiles, TheRecentLossIsThatOfFiniteOnes) {
  append(row(2) + row(4) + R"({"step": 5, "tokens": 10, "loss": null})" + "\n");
  EXPECT_EQ(read_run(directory_.path()).recent_loss(), 3.0);
  EXPECT_TRUE(std::isnan(RunRecord().recent_loss()));
}

TEST_F(RunFiles, WithoutAWholeDescriptionHaveAProblem) {
  append(row(1));
  for (const char* text : {"", "{", "[]", "3"}) {
    tests::write_file(directory_ / "run.json", text);
    RunFollower follower(directory_.path());
    const RunRecord& record = follower.update();
    EXPECT_NE(record.problem, "") << text;
    EXPECT_EQ(record.done_steps(), 1u);
    EXPECT_THROW(read_run(directory_.path()), std::runtime_error);
  }
}

}  // namespace
}  // namespace mylos::train
