#pragma once

#include "tests/support/launch.hpp"
#include "tests/support/worst.hpp"
#include "train/engine/trainer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <vector>

/// A run on one rank, or on all ranks of a test program, and what is compared of it.
namespace mylos::tests {

inline constexpr parallel::ModeKind every_mode[] = {
    parallel::ModeKind::replicated, parallel::ModeKind::sharded_optimizer, parallel::ModeKind::sharded_gradients,
    parallel::ModeKind::sharded, parallel::ModeKind::hybrid};

/// A size of hybrid's groups that divides the ranks and is neither 1 nor all, where there is one.
inline std::size_t hybrid_shard_size() { return launch().world().size() % 2 == 0 ? 2 : 1; }

inline train::TrainConfig in_mode(train::TrainConfig config, parallel::ModeKind mode) {
  config.parallel.mode = mode;
  config.parallel.shard_size = mode == parallel::ModeKind::hybrid ? hybrid_shard_size() : 0;
  return config;
}

struct RunOutcome {
  std::vector<double> losses, norms, scales;  ///< of each step
  train::Metrics before, after;               ///< of evaluations around the run, where the task has one
  std::vector<float> weights;                 ///< all rows, and all state tensors
};

/// Keeps what a run reports; after `last_step` steps, where that is not 0, ends it as a signal does.
class OutcomeRecorder final : public train::Reporter {
 public:
  OutcomeRecorder(RunOutcome& outcome, std::size_t last_step) : outcome_(outcome), last_step_(last_step) {}
  void step(const train::StepReport& report) override {
    outcome_.losses.push_back(report.loss);
    outcome_.norms.push_back(report.gradient_norm);
    outcome_.scales.push_back(report.loss_scale.value_or(1.0));
    if (report.step == last_step_) std::raise(SIGUSR1);
  }

 private:
  RunOutcome& outcome_;
  std::size_t last_step_;
};

inline std::vector<float> weights_of(const train::Trainer& trainer, const ParameterTable& table) {
  std::vector<float> weights;
  for (const auto rows : {table.tensors(), table.state_tensors()}) {
    for (const ParameterTensor& row : rows) {
      std::vector<float> values(row.size);
      trainer.read_tensor(row.name, values);
      weights.insert(weights.end(), values.begin(), values.end());
    }
  }
  return weights;
}

inline RunOutcome outcome_of(train::Trainer& trainer, const train::Task& task, std::size_t last_step) {
  RunOutcome outcome;
  OutcomeRecorder recorder(outcome, last_step);
  if (task.evaluation() != nullptr) outcome.before = trainer.evaluate();
  trainer.run({&recorder});
  if (task.evaluation() != nullptr) outcome.after = trainer.evaluate();
  EXPECT_EQ(outcome.losses.size(), (last_step > 0 ? last_step : trainer.steps()) - trainer.first_step());
  outcome.weights = weights_of(trainer, task.model().table());
  return outcome;
}

/// The first `last_step` steps of a run on all ranks of this program; all steps where it is 0.
inline RunOutcome run_on_all_ranks(const train::TrainConfig& config, train::Task& task, std::size_t last_step = 0) {
  train::Trainer trainer(config, task, train::ranks_of(launch()));
  return outcome_of(trainer, task, last_step);
}

/// The same on every rank alone.
inline RunOutcome run_on_one_rank(const train::TrainConfig& config, train::Task& task, std::size_t last_step = 0) {
  train::Trainer trainer(config, task);
  return outcome_of(trainer, task, last_step);
}

/// The largest relative difference; at least 1 where there are more of one than of the other.
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
