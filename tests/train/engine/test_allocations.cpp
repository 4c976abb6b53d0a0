// After a warm-up at the run's largest T, a step makes no large heap allocation and none through Kokkos, and all its
// kernels have our labels.

#include "core/kernels/scratch.hpp"
#include "tests/small_models/image_task.hpp"
#include "tests/small_models/span_task.hpp"
#include "tests/small_models/text_task.hpp"
#include "tests/support/allocation_watch.hpp"
#include "tests/support/tool_callbacks.hpp"
#include "train/engine/loop/training_step.hpp"
#include "train/engine/memory/run_bounds.hpp"
#include "train/engine/models/initial_parameters.hpp"
#include "train/engine/models/model_predictor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

namespace mylos::small_models {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using train::Task;

constexpr std::size_t steps = 5;
constexpr std::size_t largest_allocation = 64 * 1024;

/// A task with everything its steps need.
struct Training {
  Training(std::unique_ptr<Task> trained, Precision precision, const std::string& provider, std::size_t micro)
      : task(std::move(trained)),
        micro_batch(micro > 0 ? micro : train::largest_global_batch(*task, steps)),
        gemm(provider),
        store(task->model().table(), precision, ParameterStore::Purpose::training),
        strategy(parallel::make_single_process_strategy(store)),
        optimizer(nn::make_optimizer({}, store.table(), strategy->slices())),
        arena("mylos::test::arena", planned()),
        step({*task, store, *strategy, *optimizer, gemm, arena, *ranks},
             {.largest_batch = train::largest_global_batch(*task, steps),
              .micro_batch = largest_micro_batch(),
              .limit = {.samples = micro_batch}}) {
    train::load_initial_parameters(space, *task, 42, store, *strategy);
    reserve_scratch(space, task->model().scratch_bytes(largest_micro_batch(), ParameterStore::Purpose::training,
                                                       {.threads = static_cast<std::size_t>(space.concurrency())}));
  }
  std::size_t planned() const {
    Arena measured;
    task->model().plan(measured, largest_micro_batch(), ParameterStore::Purpose::training, nn::Recompute::none);
    return measured.peak();
  }
  BatchShape largest_micro_batch() const { return train::largest_micro_batch(*task, steps, {.samples = micro_batch}); }
  /// Launches a step and takes the results of the step before, as a run does.
  void run(std::size_t index) {
    step.launch(space, {.step = index, .update = nn::UpdateSettings{.step = index, .learning_rate = 1e-4f}});
    if (step.outstanding() > 1) step.take(1.0);
    step.sync_parameters(space);
  }

  std::unique_ptr<Task> task;
  std::size_t micro_batch;
  ExecutionSpace space;
  Gemm gemm;
  ParameterStore store;
  std::unique_ptr<parallel::ShardingStrategy> strategy;
  std::unique_ptr<nn::Optimizer> optimizer;
  Arena arena;
  std::unique_ptr<parallel::Communicator> ranks = parallel::make_self_communicator();
  train::TrainingStep step;
};

/// Returns the steps with the largest micro-batch and with the longest sample, which form the warm-up wherever they
/// occur.
std::vector<std::size_t> largest_steps(const Task& task, std::size_t micro_batch) {
  std::size_t most = 0, longest = 0, most_step = 0, longest_step = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::vector<std::size_t> samples = task.global_batch(step);
    std::size_t rows = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (i % micro_batch == 0) rows = 0;
      rows += task.rows_of(samples[i]);
      if (rows > most) most = rows, most_step = step;
      if (task.rows_of(samples[i]) > longest) longest = task.rows_of(samples[i]), longest_step = step;
    }
  }
  return {most_step, longest_step};
}

struct Case {
  std::string name;
  std::function<std::unique_ptr<Task>()> make;
  Precision precision = Precision::float32;
};

std::vector<Case> cases() {
  const auto bert = [](Precision precision) {
    return [precision]() -> std::unique_ptr<Task> {
      SpanTaskConfig config{.precision = precision, .sequences = 48, .batch = 16};
      config.shape = {.vocabulary = 500,
                      .hidden = 60,
                      .layers = 2,
                      .heads = 3,
                      .feed_forward = 240,
                      .positions = 120,
                      .token_types = 2};
      return std::make_unique<SpanTask>(config);
    };
  };
  return {{"BERT in float", bert(Precision::float32)},
          {"BERT in bfloat16", bert(Precision::bfloat16), Precision::bfloat16},
          {"BERT in half", bert(Precision::float16), Precision::float16},
          {"ResNet", [] { return std::make_unique<ImageTask>(); }},
          {"Llama", [] { return std::make_unique<TextTask>(TextTaskConfig{.batch = 48}); }}};
}

/// Calls `check` for each task after its warm-up, with each provider, with and without micro-batches.
void for_each_run(const std::function<void(Training&)>& check) {
  for (const Case& c : cases()) {
    for (const std::string& provider : gemm_providers()) {
      for (const std::size_t micro_batch : {0u, 7u}) {
        SCOPED_TRACE(fmt::format("{} with {}, micro-batch {}", c.name, provider, micro_batch));
        Training run(c.make(), c.precision, provider, micro_batch);
        for (const std::size_t step : largest_steps(*run.task, run.micro_batch)) run.run(step);
        check(run);
      }
    }
  }
}

/// A device's libraries load kernels when a shape first needs them, and sanitizers have malloc in their hands.
bool watches_heap() { return runs_on_host && tests::AllocationWatch::available(); }

TEST(Allocations, AfterWarmUpNeitherTheHeapNorKokkosGivesAnythingAndKernelsBearOurLabels) {
  for_each_run([](Training& run) {
    if (watches_heap()) {
      tests::AllocationWatch watch(largest_allocation);
      for (std::size_t step = 0; step < steps; ++step) run.run(step);
      watch.stop();
      EXPECT_EQ(watch.count(), 0u) << watch.first();
    }
    const tests::KokkosRecorder recorder;
    for (std::size_t step = 0; step < steps; ++step) run.run(step);
    std::vector<std::string> allocations;
    for (const auto& [label, bytes] : recorder.allocations())
      allocations.push_back(fmt::format("{}: {}", label, bytes));
    EXPECT_TRUE(allocations.empty()) << fmt::format("{}", fmt::join(allocations, "\n"));
    EXPECT_GT(recorder.launches().size(), steps * 20);
    EXPECT_TRUE(recorder.foreign_launches().empty()) << fmt::format("{}", fmt::join(recorder.foreign_launches(), "\n"));
  });
}

/// The buffers for batches have their final size at once; the other copies of operands grow with the batch.
TEST(Allocations, AfterTheSmallestStepBatchesTakeNothing) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    Training run(c.make(), c.precision, default_gemm_provider(), 7);
    const auto rows = [&](std::size_t step) {
      std::size_t sum = 0;
      for (const std::size_t sample : run.task->global_batch(step)) sum += run.task->rows_of(sample);
      return sum;
    };
    std::size_t smallest = 0;
    for (std::size_t step = 1; step < steps; ++step) smallest = rows(step) < rows(smallest) ? step : smallest;
    for (int turn = 0; turn < 2; ++turn) run.run(smallest);  // on a device, batches alternate between two buffers
    const tests::KokkosRecorder recorder;
    for (std::size_t step = 0; step < steps; ++step) run.run(step);
    for (const auto& [label, bytes] : recorder.allocations()) EXPECT_THAT(label, Not(HasSubstr("Batch"))) << bytes;
  }
}

/// Only gradients need rows grouped by value, so an evaluation neither groups rows nor uploads groups.
TEST(Allocations, AnEvaluationHoldsNoGroups) {
  Training run(std::make_unique<TextTask>(TextTaskConfig{.batch = 48}), Precision::float32, default_gemm_provider(), 7);
  train::Evaluation& evaluation = *run.task->evaluation();
  Arena measured;
  run.task->model().plan(measured, evaluation.largest_batch(), ParameterStore::Purpose::inference, nn::Recompute::none);
  Arena arena("mylos::test::arena", measured.peak());
  const tests::KokkosRecorder recorder;
  train::ModelPredictor predictor(*run.ranks, run.space, run.task->model(), run.store, run.strategy->hooks(), run.gemm,
                                  arena, evaluation.largest_batch());
  predictor.predict(evaluation);
  std::size_t tokens = 0;
  for (const auto& [label, bytes] : recorder.allocations()) {
    EXPECT_THAT(label, Not(MatchesRegex("mylos::Batch::(tokens|position)_.*")));
    tokens += label == "mylos::Batch::tokens" ? 1 : 0;
  }
  EXPECT_GT(tokens, 0u);
  EXPECT_TRUE(recorder.launched("mylos::Batch::locate_rows"));
  EXPECT_FALSE(recorder.launched("mylos::Batch::group_rows_by_position"));
}

TEST(Allocations, TheWatchSeesWhatIsLarge) {
  if (!tests::AllocationWatch::available()) GTEST_SKIP() << "sanitizers have malloc in their hands";
  tests::AllocationWatch watch(largest_allocation);
  const std::vector<char> small(largest_allocation);
  EXPECT_EQ(watch.count(), 0u);
  const std::vector<char> large(largest_allocation + 1);
  EXPECT_EQ(watch.count(), 1u);
  const HostVector<float> view("test::large", largest_allocation);
  EXPECT_EQ(watch.count(), 2u);
  EXPECT_NE(watch.first().find("65537 bytes by"), std::string::npos) << watch.first();
  watch.stop();
  const std::vector<char> later(largest_allocation + 1);
  EXPECT_EQ(watch.count(), 2u);
}

/// A separate function, because kernels may not be launched from the private functions that TEST creates.
void launch_foreign(const Vector<float>& view) {
  Kokkos::parallel_for(
      "foreign", Kokkos::RangePolicy<ExecutionSpace>(0, 3), KOKKOS_LAMBDA(int i) { view(i) = 1.0f; });
}

TEST(Allocations, TheRecorderSeesKokkosViewsAndForeignLabels) {
  const tests::KokkosRecorder recorder;
  const Vector<float> view("test::seen", 3);
  launch_foreign(view);
  ASSERT_EQ(recorder.allocations().size(), 1u);
  EXPECT_EQ(recorder.allocations().front().label, "test::seen");
  EXPECT_EQ(recorder.foreign_launches(), std::vector<std::string>{"foreign"});
}

}  // namespace
}  // namespace mylos::small_models
