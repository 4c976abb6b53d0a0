#include "tests/app/rank_runs.hpp"

#include <gtest/gtest.h>

#include <map>

/// More ranks than most machines have processors: the test of lab/test-scale, which runs on up to 256 ranks.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class Crowd : public RankRuns {
 protected:
  static constexpr std::size_t ranks = 32, fewer = 8, steps = 4, saved = 2;

  Crowd() : RankRuns(llama_family()) {}

  void SetUp() override {
    RankRuns::SetUp();
    write_file(train_, tiny_documents(2 * ranks));
  }

  /// Returns the losses of a run without evaluation, by step.
  std::map<std::size_t, double> losses_of(std::size_t count, const std::string& output, const Words& more) {
    const fs::path run = directory_ / output;
    Words words = with_options({"train", "--model", model_, "--train", train_, "--output", run, "--lr", "1e-3",
                                "--gemm", default_gemm_provider(), "--batch", std::to_string(ranks), "--steps",
                                std::to_string(steps), "--checkpoint-every", std::to_string(saved)},
                               more);
    // One program for all ranks, so the launcher needs no list of them.
    Words launch = joined({"-n", std::to_string(count), program()}, words);
    const ProgramRun ended = RunningProgram(launch, "", {}, mpiexec()).wait();
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    std::map<std::size_t, double> losses;
    if (ended.exit_code != 0) return losses;
    for (const auto& row : metrics_of(run, "loss")) losses[row["step"]] = row["loss"];
    return losses;
  }
};

TEST_F(Crowd, TrainsSavesAndGoesOnOnFewerRanksWithTheLossesOfOne) {
  const std::map<std::size_t, double> one = losses_of(1, "one", {"--mode", "replicated"});
  ASSERT_EQ(one.size(), steps);
  const auto expect_losses = [&](const std::map<std::size_t, double>& losses, std::size_t first) {
    EXPECT_EQ(losses.size(), steps + 1 - first);
    for (const auto& [step, loss] : losses) {
      EXPECT_GE(step, first);
      EXPECT_NEAR(loss, one.at(step), 1e-5) << "step " << step;
    }
  };
  expect_losses(losses_of(ranks, "crowd", {"--mode", "sharded"}), 1);
  const fs::path checkpoint = directory_ / "crowd" / "checkpoints" / "step-000002.h5";
  ASSERT_TRUE(fs::exists(checkpoint));
  expect_losses(losses_of(fewer, "fewer", {"--mode", "hybrid", "--shard-size", "4", "--resume", checkpoint}),
                saved + 1);
}

}  // namespace
}  // namespace mylos::tests
