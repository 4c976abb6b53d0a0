// Digits in groups of 16 on all ranks of this program: BatchNorm sees the same groups on every launch.

#include "tasks/image_classification/image_config.hpp"
#include "tests/support/rank_outcomes.hpp"
#include "tests/tasks/recorded_runs.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>

namespace mylos::tests {
namespace {

/// Images at once on a rank; 0: as many as it has of a step.
constexpr std::array<std::size_t, 3> images_at_once = {0, 16, 32};

class DigitsOnRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (!recorded_.obstacle.empty()) GTEST_SKIP() << recorded_.obstacle;
    recorded_.run.task.dev.clear();
    tasks::image_config(recorded_.run).batch_norm_group = 16;
  }

  RecordedRun recorded_ = recorded_digits();
};

// A rounding flips a rectifier soon, so that only the first steps can be compared.
TEST_F(DigitsOnRanks, EveryModeGivesTheLossesOfOneRank) {
  constexpr std::size_t steps = 2;
  const auto task = recorded_.task();
  const RunOutcome expected = run_on_one_rank(recorded_.run.engine, *task, steps);
  for (std::size_t i = 0; i < std::size(every_mode); ++i) {
    train::TrainConfig config = in_mode(recorded_.run.engine, every_mode[i]);
    config.micro_batch = images_at_once[(i + launch().world().size()) % images_at_once.size()];
    const RunOutcome outcome = run_on_all_ranks(config, *task, steps);
    EXPECT_LE(relative_difference(outcome.losses, expected.losses), 1e-5)
        << fmt::format("{} by {}", to_string(every_mode[i]), config.micro_batch);
  }
}

TEST_F(DigitsOnRanks, DeterministicIsBitForBitInEveryMode) {
  constexpr std::size_t steps = 50;
  if (!std::has_single_bit(launch().world().size())) GTEST_SKIP() << "no power of two";
  const auto task = recorded_.task();
  train::TrainConfig config = recorded_.run.engine;
  config.parallel.deterministic = true;
  config.parallel.leaves = 4;
  const RunOutcome expected = run_on_one_rank(config, *task, steps);
  for (const parallel::ModeKind mode : every_mode) {
    SCOPED_TRACE(to_string(mode));
    expect_same_bits(run_on_all_ranks(in_mode(config, mode), *task, steps), expected);
  }
}

}  // namespace
}  // namespace mylos::tests
