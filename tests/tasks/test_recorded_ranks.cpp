// The first steps of the recorded run of each family on all ranks of this program: every mode gives the recorded
// losses, and deterministic runs the bits of a single rank.

#include "tests/support/rank_outcomes.hpp"
#include "tests/tasks/recorded_runs.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>

namespace mylos::tests {
namespace {

constexpr std::size_t steps = 50;
/// Micro-batch per rank in samples; 0: all of the rank's samples of a step.
constexpr std::array<std::size_t, 4> micro_batches = {0, 1, 3, 2};

class RecordedOnRanks : public testing::TestWithParam<RecordedRun (*)()> {
 protected:
  void SetUp() override {
    if (!recorded_.obstacle.empty()) GTEST_SKIP() << recorded_.obstacle;
    recorded_.run.task.dev.clear();
  }

  RecordedRun recorded_ = GetParam()();
};

// Over 1, 2, 3 and 4 ranks each mode is combined with each micro-batch. On 3 ranks CI runs only Llama, to save time.
TEST_P(RecordedOnRanks, EveryModeGivesTheRecordedLosses) {
  const auto task = recorded_.task();
  const std::vector<double> expected = recorded_.losses(steps);
  for (std::size_t i = 0; i < std::size(every_mode); ++i) {
    train::TrainConfig config = in_mode(recorded_.run.engine, every_mode[i]);
    config.micro_batch = micro_batches[(i + launch().world().size()) % micro_batches.size()];
    const RunOutcome outcome = run_on_all_ranks(config, *task, steps);
    EXPECT_LE(relative_difference(outcome.losses, expected), 1e-5)
        << fmt::format("{} by {}", to_string(every_mode[i]), config.micro_batch);
  }
}

/// Returns the modes whose deterministic runs are compared on this number of ranks; together they cover all modes.
/// Steps of small models are compared in every mode on every number of ranks (tests/train/engine/test_many_ranks.cpp).
std::vector<parallel::ModeKind> deterministic_modes(std::size_t ranks) {
  using parallel::ModeKind;
  if (ranks == 1) return {ModeKind::sharded_optimizer};
  if (ranks == 2) return {ModeKind::replicated, ModeKind::sharded};
  return {ModeKind::sharded_gradients, ModeKind::hybrid};
}

TEST_P(RecordedOnRanks, DeterministicIsBitForBit) {
  const std::size_t ranks = launch().world().size();
  if (!std::has_single_bit(ranks)) GTEST_SKIP() << "no power of two";
  const auto task = recorded_.task();
  train::TrainConfig config = recorded_.run.engine;
  config.parallel.deterministic = true;
  const RunOutcome expected = run_on_one_rank(config, *task, steps);
  EXPECT_LE(relative_difference(expected.losses, recorded_.losses(steps)), 1e-5);
  for (const parallel::ModeKind mode : deterministic_modes(ranks)) {
    SCOPED_TRACE(to_string(mode));
    expect_same_bits(run_on_all_ranks(in_mode(config, mode), *task, steps), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, RecordedOnRanks, testing::Values(recorded_examples, recorded_chess),
                         [](const auto& info) { return info.param().name; });

}  // namespace
}  // namespace mylos::tests
