// The first steps of the recorded run of each family on all ranks of this program: modes give the recorded losses, and
// deterministic runs the bits of a single rank, also of evaluations.

#include "tests/support/rank_outcomes.hpp"
#include "tests/tasks/recorded_runs.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace mylos::tests {
namespace {

constexpr std::size_t steps = 20;

/// A sharding strategy, and the micro-batch per rank in samples; 0: all of the rank's samples of a step.
struct Division {
  parallel::StrategyKind strategy;
  std::size_t micro_batch;
};

/// Returns what is compared on this number of ranks. The numbers of ranks together have every mode. Steps of small
/// models are compared in every mode on every number of ranks (tests/train/engine/test_many_ranks.cpp).
std::vector<Division> divisions(std::size_t ranks) {
  using parallel::StrategyKind;
  if (ranks == 2) return {{StrategyKind::replicated, 3}, {StrategyKind::sharded, 0}};
  if (ranks == 3) return {{StrategyKind::sharded_gradients, 0}};
  return {{StrategyKind::sharded_optimizer, 2}, {StrategyKind::sharded_gradients, 1}, {StrategyKind::hybrid, 0}};
}

class RecordedOnRanks : public testing::TestWithParam<RecordedRun (*)()> {
 protected:
  void SetUp() override {
    if (!recorded_.obstacle.empty()) GTEST_SKIP() << recorded_.obstacle;
    recorded_.run.task.dev_limit = 16;  // questions or games of an evaluation
  }

  RecordedRun recorded_ = GetParam()();
};

TEST_P(RecordedOnRanks, ModesGiveTheRecordedLosses) {
  const auto task = recorded_.task();
  const std::vector<double> expected = recorded_.losses(steps);
  for (const Division& division : divisions(launch().world().size())) {
    train::TrainConfig config = with_strategy(recorded_.run.engine, division.strategy);
    config.micro_batch = division.micro_batch;
    const RunOutcome outcome = run_on_all_ranks(config, *task, steps);
    EXPECT_LE(relative_difference(outcome.losses, expected), 1e-5)
        << fmt::format("{} by {}", to_string(division.strategy), division.micro_batch);
  }
}

TEST_P(RecordedOnRanks, DeterministicIsBitForBit) {
  const std::size_t ranks = launch().world().size();
  if (!std::has_single_bit(ranks)) GTEST_SKIP() << "no power of two";
  const auto task = recorded_.task();
  train::TrainConfig config = recorded_.run.engine;
  config.parallel.deterministic = true;
  const RunOutcome expected = run_on_one_rank(config, *task, steps);
  EXPECT_LE(relative_difference(expected.losses, recorded_.losses(steps)), 1e-5);
  for (const Division& division : divisions(ranks)) {
    SCOPED_TRACE(to_string(division.strategy));
    expect_same_bits(run_on_all_ranks(with_strategy(config, division.strategy), *task, steps), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, RecordedOnRanks,
                         testing::Values(recorded_examples, recorded_chess, recorded_chess_adapters),
                         [](const auto& info) { return info.param().name; });

}  // namespace
}  // namespace mylos::tests
