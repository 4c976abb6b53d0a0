#include "train/monitor/progress.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>

namespace mylos::train {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A run that is reported step by step, with a simulated clock.
class ProgressTest : public testing::Test {
 protected:
  void begin(bool terminal, const RunStart& run) {
    progress_ = std::make_unique<Progress>(out_, ProgressView{.terminal = terminal,
                                                              .width = [this] { return width_; },
                                                              .clock = [this] { return now_; },
                                                              .speaker = speaker_,
                                                              .ceiling = ceiling_});
    progress_->start(run);
  }

  void step(double seconds, double loss = 2.0, std::size_t tokens = 1000) {
    now_ += seconds;
    ++step_;
    progress_->step({.step = step_,
                     .epoch = static_cast<double>(step_) / 100.0,
                     .loss = loss,
                     .tokens = tokens,
                     .seconds = seconds,
                     .flops = 3e9,
                     .memory = memory_});
  }

  /// Returns the output since the last call.
  std::string written() {
    std::string text = out_.str();
    out_.str("");
    return text;
  }

  std::size_t lines() {
    const std::string text = out_.str();
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }

  std::ostringstream out_;
  std::size_t width_ = 80;
  double now_ = 100.0;
  std::size_t step_ = 0;
  std::string speaker_;
  double ceiling_ = 0.0;  ///< unknown
  std::size_t memory_ = 0;
  std::unique_ptr<Progress> progress_;
};

TEST_F(ProgressTest, PlainLineSaysStepEpochLossRateAndTimeLeft) {
  begin(false, {.steps = 200, .steps_per_epoch = 100});
  step(0.5);
  EXPECT_EQ(written(), "step 1/200 (0 %)  epoch 0.01  loss 2.0000  2000 tokens/s  1:40 left\n");
}

TEST_F(ProgressTest, SpeedIsOfTheWorkThatTheRunCounts) {
  const WorkKind images = {.name = "images", .singular = "image", .rows = 50, .samples = "groups", .sample = "group"};
  begin(false, {.steps = 200, .steps_per_epoch = 100, .work = images});
  step(0.5);
  EXPECT_EQ(written(), "step 1/200 (0 %)  epoch 0.01  loss 2.0000  40 images/s  1:40 left\n");
}

TEST_F(ProgressTest, EscapesInAnErrorDoNotReachTheTerminal) {
  for (const bool terminal : {false, true}) {
    begin(terminal, {.steps = 200, .steps_per_epoch = 100});
    written();
    progress_->checkpoint({.step = 7,
                           .file = "f",
                           .error = "cannot write x\x1b]52;c;aGk=\x07\xc2\x9b"
                                    "1m: disk full"});
    EXPECT_EQ(written(), "step 7: no checkpoint: cannot write x]52;c;aGk=1m: disk full\n");
  }
}

TEST_F(ProgressTest, PlainLineSaysAllThatIsKnown) {
  ceiling_ = 1e10;
  memory_ = 3 << 29;
  begin(false, {.steps = 200, .steps_per_epoch = 100});
  progress_->evaluation({.step = 0,
                         .seconds = 0.0,
                         .metrics = {{"validation_loss", 1.0}, {"exact", 40.0}, {"f1", 50.126}, {"total", 7.0}}});
  written();
  step(0.5);
  EXPECT_EQ(written(),
            "step 1/200 (0 %)  epoch 0.01  loss 2.0000  exact 40, f1 50.13  2000 tokens/s  60 % of GEMM  1.50 GiB  "
            "1:40 left\n");
}

TEST_F(ProgressTest, EachLineOfARankBeginsWithItsName) {
  speaker_ = "rank 3: ";
  begin(false, {.steps = 200, .steps_per_epoch = 100});
  step(0.5);
  progress_->evaluation({.step = 1, .seconds = 1.0, .metrics = {{"accuracy", 0.5}}});
  progress_->checkpoint({.step = 8, .file = "x", .error = "no disk"});
  EXPECT_EQ(written(),
            "rank 3: step 1/200 (0 %)  epoch 0.01  loss 2.0000  2000 tokens/s  1:40 left\n"
            "rank 3: step 1: accuracy 0.5 (took 0:01)\n"
            "rank 3: step 8: no checkpoint: no disk\n");
}

TEST_F(ProgressTest, PlainLinesComeEveryTwentiethOfTheRun) {
  begin(false, {.steps = 200});
  for (int i = 0; i < 200; ++i) step(2.0);
  EXPECT_EQ(lines(), 1u + 19u + 1u);  // the first step, then steps 11, 21, ... 191, then the last
  EXPECT_THAT(written(), EndsWith("step 200/200 (100 %)  epoch 2.00  loss 2.0000  500 tokens/s  0:00 left\n"));
}

TEST_F(ProgressTest, PlainLinesOfAQuickRunAreTenSecondsApart) {
  begin(false, {.steps = 1000});
  for (int i = 0; i < 1000; ++i) step(0.025);
  EXPECT_EQ(lines(), 1u + 2u + 1u);  // 25 s
}

TEST_F(ProgressTest, PlainLinesOfALongRunAreAMinuteApart) {
  begin(false, {.steps = 100000});
  for (int i = 0; i < 600; ++i) step(1.0);
  EXPECT_EQ(lines(), 1u + 9u);
}

TEST_F(ProgressTest, PlainRunThatEndsEarlySaysWhere) {
  begin(false, {.steps = 1000});
  for (int i = 0; i < 3; ++i) step(0.5);
  written();
  progress_->finish();
  EXPECT_THAT(written(), StartsWith("step 3/1000 "));
}

TEST_F(ProgressTest, PlainOutputHasNoTerminalCodes) {
  begin(false, {.steps = 2});
  step(1.0);
  progress_->evaluation({.step = 1, .metrics = {{"f1", 1.0}}});
  step(1.0);
  progress_->finish();
  const std::string text = written();
  EXPECT_THAT(text, Not(HasSubstr("\r")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST_F(ProgressTest, TerminalRefreshesOneLine) {
  begin(true, {.steps = 4});
  step(1.0);
  EXPECT_EQ(written(), "\r\x1b[K 25 %  [====>             ]  1/4  loss 2.0000  1000 tokens/s  0:03 left");
  step(1.0);
  EXPECT_EQ(written(), "\r\x1b[K 50 %  [=========>        ]  2/4  loss 2.0000  1000 tokens/s  0:02 left");
}

TEST_F(ProgressTest, TerminalIsNotRefreshedMoreThanTenTimesASecond) {
  begin(true, {.steps = 1000});
  step(0.01);
  written();
  step(0.01);
  EXPECT_EQ(written(), "");
  step(0.1);
  EXPECT_THAT(written(), HasSubstr("3/1000"));
}

TEST_F(ProgressTest, NarrowTerminalLosesWhatMattersLeast) {
  const auto line_at = [this](std::size_t width) {
    width_ = width;
    step(1.0);
    return written().substr(4);
  };
  begin(true, {.steps = 1000});
  EXPECT_THAT(line_at(200), HasSubstr("[>" + std::string(17, ' ') + "]  1/1000"));
  EXPECT_EQ(line_at(55), "  0 %  2/1000  loss 2.0000  1000 tokens/s  16:38 left");
  EXPECT_EQ(line_at(46), "  0 %  loss 2.0000  1000 tokens/s  16:37 left");
  EXPECT_EQ(line_at(35), "  0 %  loss 2.0000  16:36 left");
  EXPECT_EQ(line_at(12), "  0 %  loss");
  EXPECT_EQ(line_at(0), " ");
}

TEST_F(ProgressTest, ANarrowerTerminalLosesMemoryThenShareThenScores) {
  const auto line_at = [this](std::size_t width) {
    width_ = width;
    step(1.0);
    return written().substr(4);
  };
  ceiling_ = 6e9;
  memory_ = 3 << 29;
  begin(true, {.steps = 1000});
  progress_->evaluation({.step = 0, .metrics = {{"exact", 40.0}, {"f1", 50.0}}});
  written();
  EXPECT_EQ(line_at(100),
            "  0 %  1/1000  loss 2.0000  exact 40, f1 50  1000 tokens/s  50 % of GEMM  1.50 GiB  16:39 left");
  EXPECT_EQ(line_at(90), "  0 %  2/1000  loss 2.0000  exact 40, f1 50  1000 tokens/s  50 % of GEMM  16:38 left");
  EXPECT_EQ(line_at(76), "  0 %  3/1000  loss 2.0000  exact 40, f1 50  1000 tokens/s  16:37 left");
  EXPECT_EQ(line_at(60), "  0 %  4/1000  loss 2.0000  1000 tokens/s  16:36 left");
}

TEST_F(ProgressTest, LinesNeverReachTheLastColumn) {
  ceiling_ = 6e9;
  memory_ = 3 << 29;
  begin(true, {.steps = 1000});
  for (width_ = 2; width_ < 120; ++width_) {
    step(1.0);
    EXPECT_LT(written().substr(4).size(), width_);
  }
}

TEST_F(ProgressTest, EvaluationStandsAboveTheLineWithItsFirstThreeMetrics) {
  begin(true, {.steps = 4});
  step(1.0);
  written();
  progress_->evaluation({.step = 1,
                         .seconds = 61.0,
                         .metrics = {{"validation_loss", 1.23456}, {"exact", 40.0}, {"f1", 50.125}, {"total", 7.0}},
                         .best = true});
  EXPECT_EQ(written(),
            "\r\x1b[Kstep 1: validation loss 1.2346, exact 40, f1 50.125 (took 1:01), the best so far\n"
            "\r\x1b[K 25 %  [=>    ]  1/4  loss 2.0000  exact 40, f1 50.12  1000 tokens/s  3:06 left");
}

TEST_F(ProgressTest, EvaluationThatIsNotTheBestIsNotCalledSo) {
  begin(false, {.steps = 4});
  progress_->evaluation({.step = 2, .seconds = 1.0, .metrics = {{"accuracy", 0.5}}});
  EXPECT_EQ(written(), "step 2: accuracy 0.5 (took 0:01)\n");
}

TEST_F(ProgressTest, CheckpointSaysSizeTimeAndBandwidth) {
  begin(false, {.steps = 200, .steps_per_epoch = 100});
  progress_->checkpoint({.step = 7, .file = "run/checkpoints/step-000007.h5", .bytes = 3 << 20, .seconds = 0.5});
  EXPECT_EQ(written(), "step 7: checkpoint step-000007.h5, 3.00 MiB in 0.50 s, 6.00 MiB/s\n");
  progress_->checkpoint({.step = 8, .file = "x", .error = "cannot write x: No space left on device"});
  EXPECT_EQ(written(), "step 8: no checkpoint: cannot write x: No space left on device\n");
}

TEST_F(ProgressTest, ASkippedStepSaysWhyAndWhatIsNext) {
  begin(false, {.steps = 200, .steps_per_epoch = 100});
  progress_->step({.step = 1, .epoch = 0.01, .loss = 2.0, .tokens = 10, .loss_scale = 65536.0, .skipped = true});
  EXPECT_THAT(written(), StartsWith("step 1: the gradient is not finite with loss scale 65536: the update is skipped, "
                                    "and the next step has 32768\nstep 1/200"));
}

TEST_F(ProgressTest, FinishLeavesTheLastLineStanding) {
  begin(true, {.steps = 1000});
  for (int i = 0; i < 3; ++i) step(0.01);
  written();
  progress_->finish();
  const std::string text = written();
  EXPECT_THAT(text, HasSubstr("3/1000"));
  EXPECT_THAT(text, EndsWith("left\n"));
  progress_.reset();
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressTest, ARunThatFailsDoesNotLeaveTheLineOpen) {
  begin(true, {.steps = 4});
  step(1.0);
  written();
  progress_.reset();
  EXPECT_EQ(written(), "\n");
}

TEST_F(ProgressTest, LossIsSmoothedWithoutLeaningToZero) {
  begin(false, {.steps = 2});
  step(1.0, 4.0);
  step(1.0, 2.0);
  // (0.95 * 4 + 2) / (0.95 + 1)
  EXPECT_THAT(written(), HasSubstr("loss 2.9744"));
}

TEST_F(ProgressTest, ResumedRunCountsItsOwnStepsForTheTimeLeft) {
  step_ = 90;
  begin(false, {.steps = 100, .first_step = 90});
  step(2.0);
  EXPECT_THAT(written(), AllOf(HasSubstr("91 %"), HasSubstr("0:18 left")));
}

TEST(RecentRate, ForgetsWhatIsMoreThanSecondsAgo) {
  RecentRate rate;
  EXPECT_EQ(rate.per_second(), 0.0);
  for (int i = 0; i < 10; ++i) rate.add(1.0, 100);
  for (int i = 0; i < 5; ++i) rate.add(1.0, 700);
  EXPECT_EQ(rate.per_second(), 700.0);
}

TEST(RecentRate, KeepsOneStepHoweverLong) {
  RecentRate rate;
  rate.add(1.0, 1);
  rate.add(100.0, 100);
  EXPECT_EQ(rate.per_second(), 1.0);
}

TEST(StderrView, TreatsADumbTerminalAsNone) {
  const tests::EnvironmentVariable terminal("TERM", "dumb");
  const ProgressView view = stderr_view();
  EXPECT_FALSE(view.terminal);
  EXPECT_GT(view.width(), 0u);
  const double before = view.clock();
  EXPECT_LE(before, view.clock());
}

}  // namespace
}  // namespace mylos::train
