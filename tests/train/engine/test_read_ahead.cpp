#include "tests/small_models/image_task.hpp"
#include "tests/small_models/observed_task.hpp"
#include "tests/small_models/span_task.hpp"
#include "tests/support/temporary.hpp"
#include "train/engine/loop/trainer.hpp"
#include "train/engine/memory/run_bounds.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mylos::train {
namespace {

using ::testing::ElementsAre;
using Assembled = std::vector<std::pair<std::size_t, std::vector<std::size_t>>>;  // steps and samples

/// Records the batches announced to a task, and those requested later.
class ExpectingTask final : public small_models::ForwardedTask<> {
 public:
  using ForwardedTask::ForwardedTask;
  void read_ahead(const ExpectedBatches& expected) const override {
    for (std::size_t step = expected.first_step; step < expected.steps; ++step) {
      for (const auto& samples : expected.batches_of(step)) expected_.emplace_back(step, samples);
    }
    ++reported_;
  }
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override {
    assembled_.emplace_back(step, std::vector(samples.begin(), samples.end()));
    ForwardedTask::assemble(step, samples, ids, batch);
  }
  Evaluation* evaluation() const override { return nullptr; }

  mutable Assembled expected_, assembled_;
  mutable int reported_ = 0;
};

TrainConfig config_of_steps(std::size_t steps) {
  TrainConfig config;
  config.steps = steps;
  config.gemm.provider = default_gemm_provider();
  return config;
}

TEST(ReadAhead, TheTaskIsToldWhatItWillBeAskedFor) {
  for (const bool deterministic : {false, true}) {
    small_models::ImageTask images({.groups = 9, .images_per_group = 2, .groups_per_batch = 4});
    ExpectingTask task(images);
    TrainConfig config = config_of_steps(5);
    config.micro_batch = deterministic ? 0 : 3;
    config.parallel = {.deterministic = deterministic,
                       .micro_batch_groups = 8};  // more than samples, so some are dummies
    Trainer(config, task).run({});
    EXPECT_EQ(task.reported_, 1);
    EXPECT_EQ(task.expected_, task.assembled_) << (deterministic ? "deterministic" : "by the limit");
    EXPECT_GE(task.assembled_.size(), 8u);
  }
}

TEST(ReadAhead, TheModelPreparesTheBatchesOfTheFirstEpochBeforeAny) {
  small_models::SpanTask spans(small_models::uneven_spans());
  std::vector<BatchShape> prepared;
  std::optional<std::size_t> prepared_before;  // the first batch is assembled
  const small_models::TaskObserver observer{
      .on_prepare = [&](const std::vector<BatchShape>& batches) { prepared = batches; },
      .on_training_batch = [&] { prepared_before = prepared_before.value_or(prepared.size()); }};
  small_models::ObservedTask task(spans, observer);
  TrainConfig config = config_of_steps(2 * spans.steps_per_epoch());
  config.micro_batch = 3;
  Trainer(config, task).run({});
  EXPECT_GT(prepared.size(), 1u);
  EXPECT_EQ(prepared, distinct_micro_batches(spans, spans.steps_per_epoch(), {.samples = 3}, {.ranks = 1}, 0));
  EXPECT_EQ(prepared_before, prepared.size());
}

/// Records launches and reports in order.
class Order final : public Reporter {
 public:
  void launch(std::size_t step) override { calls.push_back(fmt::format("launch {}", step)); }
  void step(const StepReport& report) override { calls.push_back(fmt::format("step {}", report.step)); }
  void evaluation(const EvaluationReport& report) override {
    calls.push_back(fmt::format("evaluation {}", report.step));
  }
  void checkpoint(const CheckpointReport& report) override {
    calls.push_back(fmt::format("checkpoint {}", report.step));
  }
  std::vector<std::string> calls;
};

TEST(ReadAhead, AStepIsLaunchedBeforeTheOneBeforeIsReported) {
  const tests::TemporaryDirectory directory;
  TrainConfig config;
  config.output = directory / "run";
  config.steps = 5;
  config.schedule = nn::ScheduleKind::constant;
  config.gemm.provider = gemm_providers().front();
  config.evaluate_every = 3;
  config.checkpoints.every_steps = 4;
  const auto calls = [&config] {
    small_models::SpanTask task(small_models::uneven_spans());
    Order order;
    Trainer(config, task).run({&order});
    return order.calls;
  };
  EXPECT_THAT(calls(),
              ElementsAre("launch 1", "launch 2", "step 1", "launch 3", "step 2", "step 3", "evaluation 3", "launch 4",
                          "step 4", "checkpoint 4", "launch 5", "step 5", "checkpoint 5", "evaluation 5"));
  config.waits_for_each_step = true;
  EXPECT_THAT(calls(),
              ElementsAre("launch 1", "step 1", "launch 2", "step 2", "launch 3", "step 3", "evaluation 3", "launch 4",
                          "step 4", "checkpoint 4", "launch 5", "step 5", "checkpoint 5", "evaluation 5"));
}

}  // namespace
}  // namespace mylos::train
