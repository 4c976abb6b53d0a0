#include "train/monitor/run_banner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace mylos::train {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::size_t mebibyte = 1u << 20;

TEST(RunBanner, CountsFrozenParameters) {
  EXPECT_EQ(parameters_text(12, 0), "12 parameters");
  EXPECT_EQ(parameters_text(22566146, 22565376), "22,566,146 parameters, 22,565,376 of them frozen");
}

RunDescription described_example() {
  RunDescription run;
  run.model = "minilm: 6 layers, hidden 384";
  run.parameters = 22566146;
  run.train = "train.json: 1,000 questions";
  run.dev = "dev.json: 1 question";
  run.precision = "float";
  run.gemm = "onednn";
  run.execution = "OpenMP";
  run.threads = 2;
  run.steps = 276;
  run.batch = 8;
  run.epochs = 2.0;
  run.memory = {.program = 24 * mebibyte,
                .before = 30 * mebibyte,
                .values = 86 * mebibyte,
                .gradients = 87 * mebibyte,
                .optimizer = 172 * mebibyte,
                .activations = 1024 * mebibyte,
                .workspace = 2 * mebibyte,
                .output = 5 * mebibyte,
                .limit = {.samples = 4},
                .largest = {.samples = 4, .rows = 1500, .longest = 384}};
  run.free_memory = 4096 * mebibyte;
  run.output = "runs/first";
  return run;
}

TEST(RunBanner, SaysAllThatARunDependsOn) {
  EXPECT_EQ(
      run_banner(described_example()),
      "model    minilm: 6 layers, hidden 384, 22,566,146 parameters\n"
      "train    train.json: 1,000 questions\n"
      "dev      dev.json: 1 question\n"
      "compute  float, matrix products by onednn, 2 threads on OpenMP\n"
      "steps    276 steps x batch 8 = 2 epochs; micro-batch 4, up to 1,500 tokens\n"
      "memory   1.37 GiB at most: program 24.00 MiB, values 86.00 MiB, gradients 87.00 MiB, optimizer 172.00 MiB, "
      "activations 1.00 GiB, GEMM workspace and kernel scratch 2.00 MiB, output 5.00 MiB; 4.00 GiB are free\n"
      "output   runs/first\n");
}

TEST(RunBanner, NamesSamplesAndTheWorkThatTheRunCounts) {
  RunDescription run = described_example();
  run.work = {.name = "images", .singular = "image", .rows = 50, .samples = "groups", .sample = "group"};
  EXPECT_THAT(run_banner(run), HasSubstr("276 steps x batch 8 = 2 epochs; micro-batch 4, up to 30 images\n"));
  run.work = {.name = "images", .singular = "image", .rows = 375, .samples = "images", .sample = "image"};
  EXPECT_THAT(run_banner(run), HasSubstr("276 steps x batch 8 = 2 epochs; micro-batch 4\n"));
}

TEST(RunBanner, SaysTheLossScaleWhereOneAdapts) {
  RunDescription run = described_example();
  run.precision = "half";
  run.loss_scale = LossScale(65536.0);
  EXPECT_THAT(run_banner(run), HasSubstr("compute  half, loss scale 65536, matrix products by onednn"));
}

TEST(RunBanner, SaysThatTheNodeIsBusy) {
  RunDescription run = described_example();
  run.load = "8 threads of other programs on 2 processors";
  EXPECT_THAT(run_banner(run),
              HasSubstr("\nload     8 threads of other programs on 2 processors: steps take longer\n"));
}

TEST(RunBanner, HasNoLineForAbsentDevData) {
  RunDescription run = described_example();
  run.dev = {};
  EXPECT_THAT(run_banner(run), Not(HasSubstr("\ndev ")));
}

TEST(ClosingLine, SaysTotalTimeTrainingTimeAndScores) {
  RunResult result;
  result.steps = 276;
  result.training_seconds = 192.0;
  result.best = {{"validation_loss", 1.5}, {"exact", 40.0}, {"f1", 50.5}, {"total", 100.0}};
  EXPECT_EQ(closing_line(result, 225.0),
            "done after 276 steps: 3:45 in all, training 3:12; validation loss 1.5, exact 40, f1 50.5\n");
}

TEST(ClosingLine, HasNoScoresWithoutAnEvaluation) {
  RunResult result;
  result.steps = 1;
  EXPECT_EQ(closing_line(result, 2.0), "done after 1 step: 0:02 in all, training 0:00\n");
}

TEST(ClosingLine, CountsSkippedSteps) {
  RunResult result;
  result.steps = 9;
  result.skipped = 2;
  EXPECT_EQ(closing_line(result, 2.0), "done after 9 steps: 0:02 in all, training 0:00, 2 steps skipped\n");
  result.joules = 1.8e6;
  EXPECT_EQ(closing_line(result, 2.0), "done after 9 steps: 0:02 in all, training 0:00, 2 steps skipped, 0.5 kWh\n");
}

TEST(ClosingLine, TellsTheTrainingOfEarlierStartsApart) {
  RunResult result;
  result.steps = 873;
  result.training_seconds = 58.0;
  result.earlier_seconds = 12.0;
  EXPECT_EQ(closing_line(result, 53.0),
            "done after 873 steps: 0:53 in all, training 0:46 (0:58 with earlier starts)\n");
}

TEST(ClosingLine, SaysWhatEndedTheRun) {
  RunResult result;
  result.steps = 9;
  result.stopped_early = true;
  EXPECT_THAT(closing_line(result, 1.0), StartsWith("stopped after 9 steps without a better evaluation: "));
  for (const auto& [signal, beginning] :
       {std::pair(SIGINT, "interrupted after 9 steps: "), std::pair(SIGTERM, "ended by SIGTERM after 9 steps: "),
        std::pair(SIGUSR1, "ended by SIGUSR1 after 9 steps: "),
        std::pair(SIGHUP, "ended by signal 1 after 9 steps: ")}) {
    result.signal = signal;
    EXPECT_THAT(closing_line(result, 1.0), StartsWith(beginning));
  }
}

using parallel::RankPlacement;

RankPlacement placement(const std::string& host, const std::string& processors, const std::string& job = "") {
  return {.host = host, .processors = processors, .job = job};
}

TEST(RankPlacements, SayNothingOfOneRankOutsideOfAJob) {
  EXPECT_EQ(rank_lines(std::vector{placement("here", "0-1")}), "");
  EXPECT_EQ(rank_lines({}), "");
  EXPECT_EQ(rank_lines(std::vector{placement("n1", "0-1", "PBS 7")}),
            "job      PBS 7\nrank     0: n1, processors 0-1\n");
}

TEST(RankPlacements, SayTheJobOnceAndFoldNeighboursThatAreAlike) {
  const std::string job = "Slurm 12, start 2";
  EXPECT_EQ(
      rank_lines(std::vector{placement("n1", "0-7", job), placement("n1", "0-7", job), placement("n2", "0-7", job),
                             placement("n2", "8-15", job), placement("n1", "0-7", job)}),
      "job      Slurm 12, start 2\n"
      "rank     0-1: n1, processors 0-7\n"
      "rank     2: n2, processors 0-7\n"
      "rank     3: n2, processors 8-15\n"
      "rank     4: n1, processors 0-7\n");
}

TEST(RankPlacements, SayWhichGpuAndTheJobsWhereTheyDiffer) {
  RankPlacement first = placement("n1", "0-7", "Slurm 12"), second = placement("n1", "8-15");
  first.device_name = "GPU 0 NVIDIA A100-SXM4-80GB";
  first.device = "GPU-1";
  EXPECT_EQ(rank_lines(std::vector{first, second}),
            "rank     0: n1, Slurm 12, GPU 0 NVIDIA A100-SXM4-80GB (GPU-1), processors 0-7\n"
            "rank     1: n1, no job, processors 8-15\n");
}

}  // namespace
}  // namespace mylos::train
