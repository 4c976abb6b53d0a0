// The plan of a model and a task that are nothing but their sizes.

#include "train/memory_plan.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::train {
namespace {

using testing::HasSubstr;

constexpr std::size_t elements = 1000;
constexpr std::size_t bytes_per_row = 1024;  // of training; a multiple of the arena's alignment

/// Takes 1 KiB a row for training and half of it for inference.
class SizedModel final : public nn::Model {
 public:
  SizedModel() : table_(ParameterTable::Builder().unit("all").row("weight", {elements}, {}).build()) {}

  const ParameterTable& table() const override { return table_; }
  void plan(Arena& arena, const BatchShape& shape, ParameterStore::Purpose purpose) const override {
    const bool training = purpose == ParameterStore::Purpose::training;
    arena.vector<std::byte>(shape.rows * bytes_per_row / (training ? 1 : 2));
  }
  void train(const nn::Pass&, const Batch&, float, const Vector<float>&) const override {}
  Matrix<float> predict(const nn::Pass&, const Batch&, const Vector<float>&) const override { return {}; }
  double training_flops(const BatchShape&) const override { return 0.0; }

 private:
  ParameterTable table_;
};

using Batches = std::vector<std::vector<std::size_t>>;

/// Global batches that are written down: each sample's number is its rows.
class ListedTask final : public Task {
 public:
  explicit ListedTask(Batches batches, BatchShape evaluated = {})
      : batches_(std::move(batches)), evaluated_(evaluated) {}

  const nn::Model& model() const override { return model_; }
  void initial_values(const RowWriter&) const override {}
  std::size_t steps_per_epoch() const override { return batches_.size(); }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return batches_[step % batches_.size()]; }
  std::size_t rows_of(std::size_t sample) const override { return sample; }
  double weight(std::span<const std::size_t> samples) const override { return static_cast<double>(samples.size()); }
  void assemble(std::span<const std::size_t>, std::span<const std::uint32_t>, Batch&) const override {}
  BatchShape evaluation_shape() const override { return evaluated_; }
  Metrics evaluate(Predictor&) override { return {}; }
  void write_results(const std::filesystem::path&) const override {}
  void export_model(const std::filesystem::path&, const RowReader&) const override {}

 private:
  SizedModel model_;
  Batches batches_;
  BatchShape evaluated_;
};

constexpr std::size_t plenty = std::size_t{1} << 40;

TEST(LargestMicroBatch, IsTheLargestOfEachSizeOverTheSteps) {
  const ListedTask task({{10, 20, 30, 40}, {70, 5, 5, 5}, {90}});
  const BatchShape two = largest_micro_batch(task, 2, 2);
  EXPECT_EQ(two.samples, 2u);
  EXPECT_EQ(two.rows, 75u);
  EXPECT_EQ(two.longest, 70u);
  EXPECT_EQ(largest_micro_batch(task, 1, 2).rows, 70u) << "later steps do not count";
  EXPECT_EQ(largest_micro_batch(task, 3, 1).rows, 90u);
  EXPECT_EQ(largest_micro_batch(task, 3, 3).rows, 90u) << "the fourth sample is a micro-batch of its own";
  EXPECT_EQ(largest_micro_batch(task, 3, 8).samples, 4u);
}

TEST(LargestGlobalBatch, CountsSamples) {
  const ListedTask task({{10}, {10, 20, 30}, {10, 20}});
  EXPECT_EQ(largest_global_batch(task, 1), 1u);
  EXPECT_EQ(largest_global_batch(task, 2), 3u);
  EXPECT_EQ(largest_global_batch(task, 1000), 3u);
}

TEST(PlanMemory, CountsEveryPart) {
  const MemoryPlan plan = plan_memory(ListedTask({{10, 20, 30, 40}}), {}, 1, plenty);
  EXPECT_EQ(plan.values, elements * 4);
  EXPECT_EQ(plan.gradients, elements * 4);
  EXPECT_EQ(plan.optimizer, elements * 8);
  EXPECT_EQ(plan.activations, 100 * bytes_per_row);
  EXPECT_EQ(plan.micro_batch, 4u);
  EXPECT_EQ(plan.largest.rows, 100u);
  EXPECT_EQ(plan.total(), elements * 16 + 100 * bytes_per_row);
}

TEST(PlanMemory, SixteenBitValuesHaveFloatMasters) {
  TrainConfig config;
  config.precision = Precision::bfloat16;
  EXPECT_EQ(plan_memory(ListedTask(Batches{{10}}), config, 1, plenty).values, elements * (2 + 4));
}

TEST(PlanMemory, SgdHasOneSlot) {
  TrainConfig config;
  config.optimizer.kind = OptimizerKind::sgd;
  EXPECT_EQ(plan_memory(ListedTask(Batches{{10}}), config, 1, plenty).optimizer, elements * 4);
}

TEST(PlanMemory, EvaluationMayNeedTheMost) {
  const BatchShape evaluated = {.samples = 8, .rows = 800, .longest = 100};
  EXPECT_EQ(plan_memory(ListedTask(Batches{{10}}, evaluated), {}, 1, plenty).activations, 400 * bytes_per_row);
  EXPECT_EQ(plan_memory(ListedTask(Batches{{700}}, evaluated), {}, 1, plenty).activations, 700 * bytes_per_row);
}

TEST(PlanMemory, HalvesTheMicroBatchUntilItFits) {
  const ListedTask task({{10, 10, 10, 10, 10, 10, 10}});
  const std::size_t fixed = elements * 16;
  EXPECT_EQ(plan_memory(task, {}, 1, fixed + 70 * bytes_per_row).micro_batch, 7u);
  EXPECT_EQ(plan_memory(task, {}, 1, fixed + 70 * bytes_per_row - 1).micro_batch, 4u);
  EXPECT_EQ(plan_memory(task, {}, 1, fixed + 39 * bytes_per_row).micro_batch, 2u);
  EXPECT_EQ(plan_memory(task, {}, 1, fixed + 10 * bytes_per_row).micro_batch, 1u);
}

TEST(PlanMemory, TakesTheMicroBatchThatIsAsked) {
  TrainConfig config;
  config.micro_batch = 3;
  EXPECT_EQ(plan_memory(ListedTask({{10, 20, 30, 40}}), config, 1, plenty).largest.rows, 60u);
  config.micro_batch = 300;
  EXPECT_EQ(plan_memory(ListedTask({{10, 20, 30, 40}}), config, 1, plenty).micro_batch, 4u);
}

TEST(PlanMemory, SaysWhatDoesNotFitAndWhatToChange) {
  const ListedTask task({{1 << 20, 1 << 20}});
  EXPECT_EQ(tests::error_of([&] { plan_memory(task, {}, 1, 1 << 29); }),
            "memory: 1.00 GiB are needed (values 0.00, gradients 0.00, optimizer 0.00, activations of 1048576 tokens "
            "1.00), 0.50 GiB are free; use a smaller --max-length or model");
  TrainConfig config;
  config.micro_batch = 2;
  EXPECT_THAT(tests::error_of([&] { plan_memory(task, config, 1, 1 << 29); }),
              HasSubstr("2.00), 0.50 GiB are free; use a smaller --micro-batch"));
}

TEST(Memory, OfThisProcessAndMachineIsKnown) {
  EXPECT_GT(available_memory(), std::size_t{1} << 20);
  EXPECT_GT(resident_memory(), std::size_t{1} << 20);
  EXPECT_GE(peak_resident_memory(), resident_memory());
}

}  // namespace
}  // namespace mylos::train
