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

constexpr std::size_t steps = 8;

/// A sharding strategy, and the micro-batch per rank in samples; 0: all of the rank's samples of a step.
struct Division {
  parallel::StrategyKind strategy;
  std::size_t micro_batch;
};

/// Returns what is compared on this number of ranks: on four of them every mode. Steps of small models are compared in
/// every mode on every number of ranks (tests/train/engine/test_many_ranks.cpp).
std::vector<Division> divisions(std::size_t ranks) {
  using parallel::StrategyKind;
  if (ranks == 3) return {{StrategyKind::sharded_gradients, 0}};
  return {{StrategyKind::replicated, 0},
          {StrategyKind::sharded_optimizer, 2},
          {StrategyKind::sharded_gradients, 1},
          {StrategyKind::sharded, 0},
          {StrategyKind::hybrid, 0}};
}

class RecordedOnRanks : public testing::TestWithParam<RecordedRun (*)()> {
 protected:
  void SetUp() override {
    if (!recorded_.obstacle.empty()) GTEST_SKIP() << recorded_.obstacle;
    recorded_.run.task.dev_limit = 16;  // questions or games of an evaluation
  }

  RecordedRun recorded_ = GetParam()();
};

/// On numbers of ranks that are powers of two, deterministic runs have the bits of one rank, too.
TEST_P(RecordedOnRanks, ModesGiveTheRecordedLosses) {
  const std::size_t ranks = launch().world().size();
  const auto task = recorded_.task();
  const std::vector<double> recorded = recorded_.losses(steps);
  train::TrainConfig deterministic = recorded_.run.engine;
  deterministic.parallel.deterministic = true;
  RunOutcome expected;
  if (std::has_single_bit(ranks)) {
    expected = run_on_one_rank(deterministic, *task, steps);
    EXPECT_LE(relative_difference(expected.losses, recorded), 1e-5);
  }
  for (const Division& division : divisions(ranks)) {
    SCOPED_TRACE(fmt::format("{} by {}", to_string(division.strategy), division.micro_batch));
    train::TrainConfig config = with_strategy(recorded_.run.engine, division.strategy);
    config.micro_batch = division.micro_batch;
    EXPECT_LE(relative_difference(run_on_all_ranks(config, *task, steps).losses, recorded), 1e-5);
    if (expected.losses.empty()) continue;
    expect_same_bits(run_on_all_ranks(with_strategy(deterministic, division.strategy), *task, steps), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, RecordedOnRanks,
                         testing::Values(recorded_examples, recorded_chess, recorded_chess_adapters),
                         [](const auto& info) { return info.param().name; });

}  // namespace
}  // namespace mylos::tests
