// What a training step asks of a device: kernels, products, copies, and how often the host waits. A CPU build runs the
// same code, so its counts are those of a build for GPUs; only products may be computed by several launches there.

#include "core/launch_bound.hpp"
#include "families/bert/bert_model.hpp"
#include "families/llama/llama_model.hpp"
#include "families/resnet/resnet_model.hpp"
#include "tests/support/device_work.hpp"
#include "tests/support/temporary.hpp"
#include "tests/tasks/recorded_engine.hpp"
#include "train/engine/train_config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <functional>

namespace mylos::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = DeviceWork::Kind;

constexpr std::size_t samples = 2, rows = 8;

/// A model, and arrays for a batch of `samples` samples with `rows` rows each.
struct ShapedModel {
  std::string name;
  std::function<std::unique_ptr<nn::Model>()> make;
  std::function<void(Batch&)> fill;
  std::string optimizer = "adamw";
};

std::vector<std::int32_t> some_indices(std::size_t count, std::size_t bound) {
  std::vector<std::int32_t> indices;
  for (std::size_t i = 0; i < count; ++i) indices.push_back(static_cast<std::int32_t>(i % bound));
  return indices;
}

/// The layers of BERT-base. Widths do not change the counts.
ShapedModel bert_base() {
  const families::BertShape shape{.vocabulary = 40,
                                  .hidden = 24,
                                  .layers = 12,
                                  .heads = 12,
                                  .feed_forward = 32,
                                  .positions = rows,
                                  .token_types = 2};
  return {"BERT-base", [=] { return families::make_bert_question_answering(shape, Precision::float32); },
          [](Batch& batch) {
            namespace names = nn::names;
            batch.set_indices(names::tokens, some_indices(samples * rows, 40));
            batch.set_indices(names::segments, some_indices(samples * rows, 2));
            batch.group_positions();
            batch.set(names::start_labels, some_indices(samples, rows));
            batch.set(names::end_labels, some_indices(samples, rows));
          }};
}

/// The layers of the Llama of 125 million parameters that lab/compare trains, with a head of its own.
ShapedModel llama() {
  const families::LlamaShape shape{.vocabulary = 40,
                                   .hidden = 24,
                                   .layers = 12,
                                   .heads = 12,
                                   .key_value_heads = 4,
                                   .head_size = 2,
                                   .feed_forward = 32,
                                   .positions = rows};
  return {"Llama, 12 layers", [=] { return families::make_llama(shape, Precision::float32); },
          [](Batch& batch) {
            namespace names = nn::names;
            batch.set_indices(names::tokens, some_indices(samples * rows, 40));
            batch.set(names::labels, some_indices(samples * rows, 40));
          }};
}

/// The layers of ResNet-50, trained with SGD.
ShapedModel resnet_50() {
  families::ResnetShape shape;
  shape.height = shape.width = 32;
  shape.embedding = 8;
  shape.hidden = {8, 8, 16, 16};
  return {"ResNet-50", [=] { return families::make_resnet(shape, {.labels = 10}, Precision::float32); },
          [bytes = shape.pixels() * shape.channels](Batch& batch) {
            batch.set(nn::names::pixels, std::vector<std::uint8_t>(samples * rows * bytes, 100));
            batch.set(nn::names::labels, some_indices(samples * rows, 10));
          },
          "sgd"};
}

std::vector<ShapedModel> shaped_models() { return {bert_base(), llama(), resnet_50()}; }

/// Everything the steps of a model need.
struct ShapedRun {
  ShapedRun(const ShapedModel& shaped, const std::string& provider)
      : task({}, shaped.make(),
             {std::vector(samples, rows), std::vector(samples, 1.0),
              [fill = shaped.fill](std::span<const std::size_t>, Batch& batch) { fill(batch); }}),
        gemm(provider),
        store(task.model().table(), Precision::float32, ParameterStore::Purpose::training),
        strategy(parallel::make_single_process_strategy(store)),
        optimizer(nn::make_optimizer({.name = shaped.optimizer}, store.table(), strategy->slices())),
        arena("mylos::test::arena", planned()),
        step({task, store, *strategy, *optimizer, gemm, arena, *ranks},
             {.steps = 100, .largest_batch = samples, .micro_batch = largest}) {
    train::load_initial_parameters(space, task, 42, store, *strategy);
    for (std::size_t i = 0; i < 3; ++i) run(i);
  }
  std::size_t planned() const {
    Arena measured;
    task.model().plan(measured, largest, ParameterStore::Purpose::training, nn::Recompute::none);
    return measured.peak();
  }
  /// Launches a step and takes the results of the step before, as a run does; the first call has none.
  train::StepResult run(std::size_t index) {
    step.launch(space, {.step = index, .update = nn::UpdateSettings{.step = index, .learning_rate = 1e-4f}});
    const train::StepResult before = step.outstanding() > 1 ? step.take(1.0) : train::StepResult{};
    step.sync_parameters(space);
    return before;
  }

  static constexpr BatchShape largest{samples, samples* rows, rows};
  RecordedTask<nn::Model> task;
  ExecutionSpace space;
  Gemm gemm;
  ParameterStore store;
  std::unique_ptr<parallel::ShardingStrategy> strategy;
  std::unique_ptr<nn::Optimizer> optimizer;
  Arena arena;
  std::unique_ptr<parallel::Communicator> ranks = parallel::make_self_communicator();
  train::TrainingStep step;
};

TEST(DeviceWork, WaitsForRanksInThePlaceOfTheResults) {
  const std::vector<ShapedModel> models = shaped_models();
  ShapedRun run(models.front(), default_gemm_provider());
  ASSERT_EQ(run.step.outstanding(), 1u);
  std::size_t calls = 0;
  {
    const DeviceWork work;
    run.step.wait([&] { ++calls; });
    EXPECT_TRUE(train::is_finite(run.step.take(1.0)));
    EXPECT_THAT(work.labels(Kind::wait), ElementsAre("mylos::TrainingStep::wait"));
  }
  EXPECT_EQ(calls, 1u);
  EXPECT_THROW(run.step.wait(), std::invalid_argument);
  run.run(3);
  const auto fail = [] { throw std::runtime_error("a rank is gone"); };
  EXPECT_THROW(run.step.wait(fail), std::runtime_error);
  EXPECT_TRUE(train::is_finite(run.step.take(1.0)));
  EXPECT_EQ(run.step.outstanding(), 0u);
}

/// For losses and norm of the step before, after a step and its update were launched: the device decides on it.
void expect_wait_after_update(const std::string& model, const DeviceWork& work) {
  EXPECT_THAT(work.labels(Kind::wait), ElementsAre("mylos::TrainingStep::wait"));
  const std::size_t wait = work.find("mylos::TrainingStep::wait");
  const std::size_t decided = work.find("mylos::optimizer::decide");
  const std::size_t copied =
      std::max(work.find("mylos::TrainingStep::host_losses"), work.find("mylos::TrainingStep::host_squares"));
  const std::size_t updated =
      work.find(model == "ResNet-50" ? "mylos::optimizer::sgd" : "mylos::optimizer::adamw", copied);
  EXPECT_LT(decided, copied);
  EXPECT_LT(copied, updated) << "the results do not wait for the update";
  EXPECT_LT(updated, wait);
  EXPECT_EQ(work.find("mylos::TrainingStep::sync_parameters"), wait + 1);
  EXPECT_EQ(wait + 2, work.entries().size()) << "float values are the master weights";
}

/// The sums of the gradient's blocks are added on the device: 8 bytes for each 1024 parameters stay there.
void expect_few_bytes_to_the_host(const DeviceWork& work) {
  std::uint64_t bytes = 0;
  for (const DeviceWork::Entry& entry : work.entries()) {
    if (entry.kind == Kind::copy && entry.label.find("::host_") != std::string::npos) bytes += entry.bytes;
  }
  EXPECT_EQ(bytes, (2 * samples + 3) * sizeof(double));
}

/// The device computes the passes while the host makes the next batch.
void expect_next_batch_before_wait(const DeviceWork& work) {
  const std::size_t made = work.find("mylos::TrainingStep::assemble"), end = work.entries().size();
  ASSERT_LT(made, end);
  EXPECT_EQ(work.find("mylos::TrainingStep::assemble", made + 1), end) << "one micro-batch a step";
  const auto first_wait = std::ranges::find(work.entries(), Kind::wait, &DeviceWork::Entry::kind);
  EXPECT_LT(made, static_cast<std::size_t>(first_wait - work.entries().begin()));
  EXPECT_LT(work.find("mylos::TrainingStep::pass"), made) << "after the passes are launched";
  EXPECT_LT(made, work.find("mylos::TrainingStep::reduce"));
}

/// docs/gpu-kernels.md has a table of these counts.
void expect_documented_counts(const std::string& model, const DeviceWork& work) {
  const std::string documentation = read_file(source_dir() / "docs/gpu-kernels.md");
  EXPECT_THAT(documentation, HasSubstr(fmt::format("| {} | {} | {} | {} | {} | {} |", model, work.count(Kind::kernel),
                                                   work.count(Kind::product), work.count(Kind::copy),
                                                   work.count(Kind::fill), work.count(Kind::wait))));
}

/// In a step of each model, by each provider of products.
TEST(DeviceWork, AStepAsksForLittle) {
  if (std::string_view(ExecutionSpace::name()) == "Serial") GTEST_SKIP() << "Kokkos' Serial waits at each copy";
  for (const ShapedModel& shaped : shaped_models()) {
    for (const std::string& provider : gemm_providers()) {
      SCOPED_TRACE(shaped.name + " by " + provider);
      ShapedRun run(shaped, provider);
      const DeviceWork work;
      const train::StepResult before = run.run(3);
      expect_wait_after_update(shaped.name, work);
      expect_few_bytes_to_the_host(work);
      expect_next_batch_before_wait(work);
      expect_documented_counts(shaped.name, work);
      EXPECT_EQ(before.sequences, samples);
      EXPECT_TRUE(train::is_finite(before));
      EXPECT_EQ(run.step.outstanding(), 1u);
      EXPECT_TRUE(train::is_finite(run.step.take(1.0)));
    }
  }
}

/// Fills and copies, some 5 % of the launches, are not counted.
TEST(DeviceWork, TheHostCountsAndBoundsItsLaunches) {
  constexpr std::size_t steps = 4, interval = LaunchBound<>::interval;
  for (const ShapedModel& shaped : shaped_models()) {
    SCOPED_TRACE(shaped.name);
    ShapedRun run(shaped, default_gemm_provider());
    const DeviceWork work;
    const std::size_t before = launches();
    for (std::size_t step = 0; step < steps; ++step) run.run(3 + step);
    const std::size_t counted = launches() - before;
    EXPECT_GE(counted, work.count(Kind::kernel) + work.count(Kind::product));
    const auto marks = static_cast<std::size_t>(
        std::ranges::count(work.entries(), std::string("mylos::LaunchBound::mark"), &DeviceWork::Entry::label));
    // Launches between two hooks, and after the last one of a step, lengthen an interval.
    EXPECT_LE(marks, counted / interval + 1);
    EXPECT_GE(marks, counted / (interval + 64));
  }
}

/// A separate function, because kernels may not be launched from the private functions that TEST creates.
void launch_everything(const ExecutionSpace& space, const Vector<float>& from, const Vector<float>& to) {
  Kokkos::parallel_for(
      "test::kernel", Kokkos::RangePolicy<ExecutionSpace>(space, 0, 1), KOKKOS_LAMBDA(int i) { from(i) = 1.0f; });
  Kokkos::deep_copy(space, from, 2.0f);
  Kokkos::deep_copy(space, to, from);
  Kokkos::deep_copy(to, from);
  space.fence("test::fence");
  const Kokkos::Profiling::ScopedRegion region("test::mark::wait");
}

TEST(DeviceWork, RecordsEachKind) {
  const ExecutionSpace space;
  const Vector<float> from("test::from", 3), to("test::to", 3);
  const DeviceWork work;
  launch_everything(space, from, to);
  EXPECT_THAT(work.labels(Kind::kernel), ElementsAre("test::kernel"));
  EXPECT_THAT(work.labels(Kind::fill), ElementsAre("test::from"));
  EXPECT_THAT(work.labels(Kind::copy), ElementsAre("test::to", "test::to"));
  EXPECT_THAT(work.labels(Kind::wait), ElementsAre("copy to test::to", "test::fence", "test::mark::wait"));
  EXPECT_EQ(work.entries()[work.find("test::to")].bytes, 12u);
}

}  // namespace
}  // namespace mylos::tests
