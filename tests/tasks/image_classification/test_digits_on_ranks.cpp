// Digits in groups of 16 on all ranks of this program: BatchNorm normalises over the same groups in every launch.

#include "tasks/image_classification/image_config.hpp"
#include "tasks/interface/task.hpp"
#include "tests/support/rank_outcomes.hpp"
#include "tests/tasks/recorded_runs.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace mylos::tests {
namespace {

TEST(DigitsOnRanks, DeterministicIsBitForBitInEveryMode) {
  constexpr std::size_t steps = 6;
  RecordedRun recorded = recorded_digits();
  if (!recorded.obstacle.empty()) GTEST_SKIP() << recorded.obstacle;
  if (!std::has_single_bit(launch().world().size())) GTEST_SKIP() << "no power of two";
  recorded.run.task.dev.clear();
  tasks::image_config(recorded.run).batch_norm_group = 16;
  const auto task = recorded.task();
  train::TrainConfig config = recorded.run.engine;
  config.parallel.deterministic = true;
  config.parallel.micro_batch_groups = 4;
  const RunOutcome expected = run_on_one_rank(config, *task, steps);
  for (const parallel::StrategyKind strategy : every_strategy) {
    SCOPED_TRACE(to_string(strategy));
    expect_same_bits(run_on_all_ranks(with_strategy(config, strategy), *task, steps), expected);
  }
}

}  // namespace
}  // namespace mylos::tests
