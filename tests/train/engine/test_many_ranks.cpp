// Compares a run on one rank with the same run on all ranks of this program in every mode: equal losses and scores, and
// equal bits if it is deterministic.

#include "core/trace.hpp"
#include "parallel/communicator/agreement.hpp"
#include "tests/small_models/image_task.hpp"
#include "tests/small_models/rank_jobs.hpp"
#include "tests/small_models/span_task.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/rank_outcomes.hpp"
#include "tests/support/shared_directory.hpp"
#include "tests/support/temporary.hpp"
#include "train/engine/loop/trainer.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <string_view>

namespace mylos::small_models {
namespace {

using parallel::StrategyKind;
using ::testing::HasSubstr;
using tests::expect_same_bits;
using tests::relative_difference;
using tests::run_on_all_ranks;
using tests::run_on_one_rank;
using tests::RunOutcome;
using tests::same_bits;
using tests::with_strategy;
using train::Task;
using train::TrainConfig;

constexpr std::size_t steps = 6;

train::Ranks all_ranks() { return train::ranks_of(tests::launch()); }
parallel::Communicator& world() { return tests::launch().world(); }

TrainConfig common() {
  TrainConfig config;
  config.steps = steps;
  config.evaluate_every = steps + 1;
  config.schedule = nn::ScheduleKind::constant;
  config.gemm.provider = default_gemm_provider();
  return config;
}

std::vector<Job> jobs() { return uneven_jobs(common()); }

void expect_near(const RunOutcome& outcome, const RunOutcome& expected) {
  EXPECT_LE(relative_difference(outcome.losses, expected.losses), 1e-5);
  EXPECT_LE(relative_difference(outcome.norms, expected.norms), 1e-4);
  EXPECT_EQ(outcome.before, expected.before) << "the same weights have the same scores, to the last digit";
  for (std::size_t i = 0; i < expected.after.size(); ++i) {
    EXPECT_NEAR(outcome.after[i].second, expected.after[i].second, 1e-4 * expected.after[i].second);
  }
}

TEST(ManyRanks, EveryModeGivesTheLossesOfOneRank) {
  std::vector<Job> all = jobs();
  all.push_back(windowed_job(common()));
  bool is_whole = true;
  for (const Job& job : all) {
    const std::unique_ptr<Task> task = job.make();
    const RunOutcome expected = run_on_one_rank(job.config, *task);
    for (const StrategyKind strategy : tests::every_strategy) {
      // Every mode has jobs of one micro-batch and of several, and every job has modes of both.
      const std::size_t micro_batch = is_whole ? 0 : job.micro_batch;
      is_whole = !is_whole;
      SCOPED_TRACE(fmt::format("{} {} by {}", job.name, to_string(strategy), micro_batch));
      TrainConfig config = with_strategy(job.config, strategy);
      config.micro_batch = micro_batch;
      expect_near(run_on_all_ranks(config, *task), expected);
      if (job.name != "BERT") continue;
      SCOPED_TRACE("gradients exchanged in bfloat16");
      config.parallel.bfloat16_gradients = true;
      EXPECT_LE(relative_difference(run_on_all_ranks(config, *task).losses, expected.losses), 1e-2);
    }
  }
}

/// Images with known BatchNorm statistics, which stand for those of a file.
class ImagesWithStatistics final : public ImageTask {
 public:
  using ImageTask::ImageTask;

  void initial_values(const FileReader&, const train::TensorWriter& write) const override {
    for (std::size_t state = 0; state < model().table().state_tensors().size(); ++state) {
      write(model().table().state_tensors()[state].name, [&](std::size_t first, std::span<float> values) {
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(state, first + i);
        read += values.size();
      });
    }
  }
  static float value(std::size_t state, std::size_t index) { return static_cast<float>(100 * (state + 1) + index); }

  mutable std::size_t read = 0;  ///< values that this rank has read
};

TEST(ManyRanks, TheFirstRankReadsTheStateOfAll) {
  ImagesWithStatistics task;
  const auto states = task.model().table().state_tensors();
  std::size_t all = 0;
  for (const ParameterTensor& state : states) all += state.size;
  ASSERT_GT(all, 0u);
  for (const StrategyKind strategy : tests::every_strategy) {
    SCOPED_TRACE(std::string(to_string(strategy)));
    task.read = 0;
    const train::Trainer trainer(with_strategy(common(), strategy), task, all_ranks());
    EXPECT_EQ(task.read, world().rank() == 0 ? all : 0);
    for (std::size_t state = 0; state < states.size(); ++state) {
      std::vector<float> values(states[state].size), expected;
      for (std::size_t i = 0; i < values.size(); ++i) expected.push_back(ImagesWithStatistics::value(state, i));
      trainer.read_tensor(states[state].name, values);
      EXPECT_EQ(values, expected) << states[state].name;
    }
  }
}

// Activations are rounded alike on every rank, except for products with another order of summation.
TEST(ManyRanks, HalfSkipsTheSameStepsInEveryMode) {
  const Job job = half_job(common());
  const std::unique_ptr<Task> task = job.make();
  const RunOutcome expected = run_on_one_rank(job.config, *task);
  EXPECT_GT(std::ranges::count_if(expected.norms, [](double norm) { return !std::isfinite(norm); }), 2);
  EXPECT_LT(expected.scales.back(), expected.scales.front());
  EXPECT_TRUE(std::isfinite(expected.norms.back()));
  for (const StrategyKind strategy : tests::every_strategy) {
    for (const bool rounded : {false, true}) {
      TrainConfig config = with_strategy(job.config, strategy);
      config.parallel.bfloat16_gradients = rounded;
      const RunOutcome outcome = run_on_all_ranks(config, *task);
      EXPECT_LE(relative_difference(outcome.losses, expected.losses), rounded ? 1e-2 : 1e-3) << to_string(strategy);
      EXPECT_EQ(outcome.scales, expected.scales) << to_string(strategy);
    }
  }
}

TEST(ManyRanks, DeterministicIsBitForBitInEveryMode) {
  if (!std::has_single_bit(world().size())) GTEST_SKIP() << "no power of two";
  std::vector<Job> all = jobs();
  all.push_back(half_job(common()));
  for (Job& job : all) {
    job.config.parallel.deterministic = true;
    const std::unique_ptr<Task> task = job.make();
    const RunOutcome expected = run_on_one_rank(job.config, *task);
    for (const StrategyKind strategy : tests::every_strategy) {
      SCOPED_TRACE(fmt::format("{} {}", job.name, to_string(strategy)));
      const RunOutcome outcome = run_on_all_ranks(with_strategy(job.config, strategy), *task);
      expect_same_bits(outcome, expected);
    }
  }
}

TEST(ManyRanks, BucketsChangeNoBit) {
  SpanTaskConfig spans{.sequences = 30, .batch = 7, .evaluation_sequences = 14};
  spans.shape = {.vocabulary = 9000,  // several messages long
                 .hidden = 16,
                 .layers = 1,
                 .heads = 2,
                 .feed_forward = 32,
                 .positions = 24,
                 .token_types = 2};
  SpanTask task(spans);
  for (const StrategyKind strategy : tests::every_strategy) {
    for (const auto& [rounded, bucket] : {std::pair{false, std::size_t{1}}, {true, std::size_t{1} << 18}}) {
      SCOPED_TRACE(fmt::format("{} in pieces of {}", to_string(strategy), bucket));
      TrainConfig config = with_strategy(jobs().front().config, strategy);
      config.steps = 2;
      config.parallel.bfloat16_gradients = rounded;
      const RunOutcome expected = run_on_all_ranks(config, task);
      config.parallel.bucket = bucket;
      const RunOutcome outcome = run_on_all_ranks(config, task);
      EXPECT_TRUE(same_bits(outcome.losses, expected.losses));
      EXPECT_TRUE(same_bits(outcome.weights, expected.weights));
    }
  }
}

constexpr const char* gather_of_values = "exchange all-gather of values of ";

/// Runs a job on all ranks and returns its outcome, with the names of this rank's exchanges in order.
std::pair<RunOutcome, std::vector<std::string>> traced_run(const TrainConfig& config, Task& task) {
  Trace::start(100000);
  RunOutcome outcome = run_on_all_ranks(config, task);
  Trace::stop();
  std::vector<std::string> exchanges;
  for (const TraceEvent& event : Trace::events()) {
    if (event.lane == TraceLane::communication) exchanges.push_back(event.name);
  }
  return {std::move(outcome), std::move(exchanges)};
}

/// Returns the exchanges from the end of each step to the end of the next one, and after the last one. A step ends with
/// exchanges of the losses, and of the norm if gradients are sharded.
std::vector<std::vector<std::string>> between_steps(const std::vector<std::string>& exchanges) {
  std::vector<std::vector<std::string>> parts;
  bool is_in_end = false;
  for (const std::string& exchange : exchanges) {
    const bool was_in_end = is_in_end;
    is_in_end =
        exchange == "exchange all-reduce of losses" || exchange == "exchange all-reduce of norm of the gradients";
    if (is_in_end && !was_in_end) parts.emplace_back();
    if (!is_in_end && !parts.empty()) parts.back().push_back(exchange);
  }
  return parts;
}

/// The host waits for the agreement when it has launched the step. If it were queued behind exchanges of that step, or
/// behind gathers of values, which the forward pass can hide, the host would wait for them, too.
TEST(ManyRanks, AgreeOnceAStepBeforeItsExchanges) {
  if (world().size() == 1) GTEST_SKIP() << "needs two ranks";
  const tests::SharedDirectory directory;
  const std::string agreement = "exchange all-gather of agreement";
  const Job job = jobs().front();
  const std::unique_ptr<Task> task = job.make();
  for (const StrategyKind strategy : tests::every_strategy) {
    SCOPED_TRACE(to_string(strategy));
    TrainConfig config = with_strategy(job.config, strategy);
    config.steps = 5;
    config.output = directory / std::string(to_string(strategy));
    config.checkpoints.every_seconds = 1e6;  // ranks agree on checkpoints, too
    const auto parts = between_steps(traced_run(config, *task).second);
    ASSERT_EQ(parts.size(), config.steps);
    for (std::size_t step : {2, 3, 4}) {
      EXPECT_EQ(parts[step - 2].front(), agreement) << "step " << step;
      EXPECT_EQ(std::ranges::count(parts[step - 2], agreement), 1) << "step " << step;
    }
    EXPECT_EQ(std::ranges::count(parts[3], agreement), 0) << "the results of step 5 are awaited";
    EXPECT_EQ(parts[4].front(), agreement);
    EXPECT_NE(parts[4].at(1), agreement);
  }
}

/// Whether a step was skipped is not known when its values are gathered.
TEST(ManyRanks, GatherValuesAfterASkippedStepToo) {
  if (world().size() == 1) GTEST_SKIP() << "needs two ranks";
  const Job job = half_job(common());
  const std::unique_ptr<Task> task = job.make();
  const auto [outcome, exchanges] = traced_run(with_strategy(job.config, StrategyKind::sharded_optimizer), *task);
  const auto updates = std::ranges::count_if(outcome.norms, [](double norm) { return std::isfinite(norm); });
  ASSERT_GT(updates, 0);
  ASSERT_LT(updates, static_cast<std::ptrdiff_t>(steps));
  const auto gathers =
      std::ranges::count_if(exchanges, [](const std::string& name) { return name.starts_with(gather_of_values); });
  const auto units = static_cast<std::ptrdiff_t>(task->model().table().units().size());
  EXPECT_EQ(gathers, static_cast<std::ptrdiff_t>(1 + steps) * units)
      << "once before the first step, and after each step";
}

/// The warm-up makes the rate depend on the number of updates, as AdamW's bias corrections do.
TEST(ManyRanks, StepsLaunchedBeforeTheResultsOfTheLastHaveTheSameBits) {
  for (Job job : {half_job(common()), jobs()[1]}) {  // one that skips steps, and one with state
    job.config.schedule = nn::ScheduleKind::linear;
    job.config.warmup_steps = 4;
    const std::unique_ptr<Task> task = job.make();
    for (const StrategyKind strategy : tests::every_strategy) {
      SCOPED_TRACE(fmt::format("{} {}", job.name, to_string(strategy)));
      TrainConfig config = with_strategy(job.config, strategy);
      const RunOutcome outcome = run_on_all_ranks(config, *task);
      config.waits_for_each_step = true;
      expect_same_bits(outcome, run_on_all_ranks(config, *task));
      if (job.config.precision != Precision::float16) continue;
      EXPECT_GT(std::ranges::count_if(outcome.norms, [](double norm) { return !std::isfinite(norm); }), 2);
    }
  }
}

/// A task with a damaged sample in the third step, which only the rank that computes it notices. Labels that are
/// ignored leave the loss finite, but not the gradient.
class DamagedTask final : public ImageTask {
 public:
  train::Evaluation* evaluation() const override { return nullptr; }
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override {
    ImageTask::assemble(step, samples, ids, batch);
    const std::vector<std::size_t> of_step = global_batch(step);
    for (const std::size_t sample : samples) EXPECT_NE(std::ranges::find(of_step, sample), of_step.end());
    if (step != 2 || std::ranges::find(samples, of_step.back()) == samples.end()) return;
    spoil_pixels(batch, std::numeric_limits<float>::quiet_NaN());
    batch.set(nn::names::labels, std::vector<std::int32_t>(batch.shape().rows, -1));
  }
};

/// Step 4 is launched before the results of step 3 are known, and changes neither weights nor BatchNorm's statistics.
TEST(ManyRanks, WhatIsNotFiniteOnOneRankStopsAll) {
  const tests::SharedDirectory directory;
  DamagedTask task;
  for (const StrategyKind strategy : tests::every_strategy) {
    TrainConfig config = with_strategy(jobs()[1].config, strategy);
    config.output = directory / std::string(to_string(strategy));
    train::Trainer trainer(config, task, all_ranks());
    const std::string error = tests::error_of([&] { trainer.run({}); });
    EXPECT_THAT(error, ::testing::StartsWith("step 3: loss "));
    EXPECT_THAT(error, HasSubstr("gradient norm nan: the run stops; last/ contains the weights from before step 3"));
    const std::string kept = tests::read_file(config.output / "last/model.safetensors");
    config.output = directory / fmt::format("two steps {}", to_string(strategy));
    config.steps = 2;
    train::Trainer(config, task, all_ranks()).run({});
    EXPECT_TRUE(kept == tests::read_file(config.output / "last/model.safetensors")) << to_string(strategy);
  }
}

/// During its lifetime, Kokkos allocations on this rank whose label has the given prefix fail.
class FailingAllocation {
 public:
  explicit FailingAllocation(std::string label) {
    label_ = std::move(label);
    Kokkos::Tools::Experimental::set_allocate_data_callback(fail_for_label);
  }
  ~FailingAllocation() { Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr); }
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

 private:
  static void fail_for_label(Kokkos_Profiling_SpaceHandle, const char* name, const void*, std::uint64_t) {
    if (std::string_view(name).starts_with(label_)) throw std::bad_alloc();
  }
  inline static std::string label_;
};

// Otherwise the other ranks would wait in the next operation until --collective-timeout.
TEST(ManyRanks, AnAllocationThatFailsOnOneRankWhileARunIsSetUpIsAnErrorOfAll) {
  if (world().size() == 1) GTEST_SKIP() << "needs two ranks";
  const Job job = jobs().front();
  for (const char* label : {"mylos::gradients::", "mylos::sharded_gradients", "mylos::optimizer::",
                            "mylos::activations", "mylos::TrainingStep::", "mylos::ModelPredictor::"}) {
    const std::unique_ptr<Task> task = job.make();
    TrainConfig config = job.config;
    config.parallel.strategy = StrategyKind::sharded;
    std::optional<FailingAllocation> failing;
    if (world().rank() == 1) failing.emplace(label);
    EXPECT_THAT(tests::error_of([&] { const train::Trainer trainer(config, *task, all_ranks()); }),
                testing::ContainsRegex("rank 1: .*(out of memory|cannot allocate)"))
        << label;
  }
}

}  // namespace
}  // namespace mylos::small_models
