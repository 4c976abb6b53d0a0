#pragma once

#include "core/base/process/signals.hpp"
#include "parallel/communicator/agreement.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/trained_weights.hpp"
#include "tests/support/worst.hpp"
#include "train/engine/loop/trainer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <tuple>
#include <vector>

/// Training runs on one rank or on all ranks of a test program, and their results for comparison.
namespace mylos::tests {

inline constexpr parallel::StrategyKind every_strategy[] = {
    parallel::StrategyKind::replicated, parallel::StrategyKind::sharded_optimizer,
    parallel::StrategyKind::sharded_gradients, parallel::StrategyKind::sharded, parallel::StrategyKind::hybrid};

/// Returns a shard size for hybrid mode that divides the ranks and is neither 1 nor all, if there is one.
inline std::size_t hybrid_shard_size() { return launch().world().size() % 2 == 0 ? 2 : 1; }

inline train::TrainConfig with_strategy(train::TrainConfig config, parallel::StrategyKind strategy) {
  config.parallel.strategy = strategy;
  config.parallel.shard_size = strategy == parallel::StrategyKind::hybrid ? hybrid_shard_size() : 0;
  return config;
}

struct RunOutcome {
  std::vector<double> losses, norms, scales;  ///< per step
  train::Metrics before, after;               ///< evaluations before and after the run, if the task has one
  std::vector<float> weights;                 ///< all parameter and state tensors
};

inline auto members(RunOutcome& outcome) {
  return std::tie(outcome.losses, outcome.norms, outcome.scales, outcome.before, outcome.after, outcome.weights);
}

/// Records the reports of a run. If `last_step` is not 0, ends the run after that step as a signal does, which comes
/// when the step is launched.
class OutcomeRecorder final : public train::Reporter {
 public:
  OutcomeRecorder(RunOutcome& outcome, std::size_t last_step) : outcome_(outcome), last_step_(last_step) {}
  void launch(std::size_t step) override {
    if (step == last_step_) SignalGuard::receive(SIGUSR1);
  }
  void step(const train::StepReport& report) override {
    outcome_.losses.push_back(report.loss);
    outcome_.norms.push_back(report.gradient_norm);
    outcome_.scales.push_back(report.loss_scale.value_or(1.0));
  }

 private:
  RunOutcome& outcome_;
  std::size_t last_step_;
};

inline RunOutcome outcome_of(train::Trainer& trainer, const train::Task& task, std::size_t last_step) {
  RunOutcome outcome;
  OutcomeRecorder recorder(outcome, last_step);
  if (task.evaluation() != nullptr) outcome.before = trainer.evaluate();
  trainer.run({&recorder});
  if (task.evaluation() != nullptr) outcome.after = trainer.evaluate();
  EXPECT_EQ(outcome.losses.size(), (last_step > 0 ? last_step : trainer.steps()) - trainer.first_step());
  outcome.weights = trained_weights(task, trainer);
  return outcome;
}

/// Runs the first `last_step` steps, or all steps if it is 0, on all ranks of this program.
inline RunOutcome run_on_all_ranks(const train::TrainConfig& config, train::Task& task, std::size_t last_step = 0) {
  train::Trainer trainer(config, task, train::ranks_of(launch()));
  return outcome_of(trainer, task, last_step);
}

/// Does the same on the first rank alone, and returns the outcome on all ranks.
inline RunOutcome run_on_one_rank(const train::TrainConfig& config, train::Task& task, std::size_t last_step = 0) {
  return parallel::on_first_rank(launch().world(), [&] {
    train::Trainer trainer(config, task);
    return outcome_of(trainer, task, last_step);
  });
}

/// Returns the largest relative difference, or at least 1 if the sizes differ.
inline double relative_difference(const std::vector<double>& values, const std::vector<double>& expected) {
  double most = values.size() == expected.size() ? 0.0 : 1.0;
  for (std::size_t i = 0; i < std::min(values.size(), expected.size()); ++i) {
    most = worse_of(most, std::abs(values[i] - expected[i]) / std::abs(expected[i]));
  }
  return most;
}

template <class Value>
bool same_bits(const std::vector<Value>& values, const std::vector<Value>& expected) {
  using Bits = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
  return std::ranges::equal(
      values, expected, {}, [](Value value) { return std::bit_cast<Bits>(value); },
      [](Value value) { return std::bit_cast<Bits>(value); });
}

inline void expect_same_bits(const RunOutcome& outcome, const RunOutcome& expected) {
  EXPECT_TRUE(same_bits(outcome.losses, expected.losses));
  EXPECT_TRUE(same_bits(outcome.norms, expected.norms));
  EXPECT_EQ(outcome.scales, expected.scales);
  EXPECT_TRUE(same_bits(outcome.weights, expected.weights));
  EXPECT_EQ(outcome.before, expected.before);
  EXPECT_EQ(outcome.after, expected.after);
}

}  // namespace mylos::tests
