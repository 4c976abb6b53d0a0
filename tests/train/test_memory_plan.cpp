#include "train/memory_plan.hpp"

#include "tests/support/temporary.hpp"
#include "tests/train/listed_task.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::train {
namespace {

using testing::HasSubstr;

TEST(PlanMemory, CountsEveryPart) {
  const MemoryPlan plan = plan_memory(ListedTask({{10, 20, 30, 40}}), {}, 1, plenty);
  EXPECT_EQ(plan.values, elements * 4);
  EXPECT_EQ(plan.gradients, elements * 4);
  EXPECT_EQ(plan.optimizer, elements * 8);
  EXPECT_EQ(plan.activations, 100 * bytes_per_row);
  EXPECT_EQ(plan.limit.samples, 4u);
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
  EXPECT_EQ(plan_memory(task, {}, 1, fixed + 70 * bytes_per_row).limit.samples, 7u);
  EXPECT_EQ(plan_memory(task, {}, 1, fixed + 70 * bytes_per_row - 1).limit.samples, 4u);
  EXPECT_EQ(plan_memory(task, {}, 1, fixed + 39 * bytes_per_row).limit.samples, 2u);
  EXPECT_EQ(plan_memory(task, {}, 1, fixed + 10 * bytes_per_row).limit.samples, 1u);
}

TEST(PlanMemory, TakesTheMicroBatchThatIsAsked) {
  TrainConfig config;
  config.micro_batch = 3;
  EXPECT_EQ(plan_memory(ListedTask({{10, 20, 30, 40}}), config, 1, plenty).largest.rows, 60u);
  config.micro_batch = 300;
  EXPECT_EQ(plan_memory(ListedTask({{10, 20, 30, 40}}), config, 1, plenty).limit.samples, 4u);
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

TEST(PlanMemory, TakesTheTokensThatAreAsked) {
  TrainConfig config;
  config.micro_tokens = 60;
  const MemoryPlan plan = plan_memory(ListedTask({{10, 20, 30, 40}}), config, 1, plenty);
  EXPECT_EQ(plan.largest.rows, 60u);
  EXPECT_EQ(plan.largest.samples, 3u);
  EXPECT_EQ(plan.limit.tokens, 60u);
  EXPECT_EQ(tests::error_of([&] {
              plan_memory(ListedTask({{10, 20}, {30, 70, 80}}), config, 2, plenty);
            }),
            "--micro-tokens 60: the longest sequence that is trained on has 80 tokens; use at least that many");
  EXPECT_NO_THROW(plan_memory(ListedTask({{10, 20}, {30, 70, 80}}), config, 1, plenty)) << "step 2 is not run";
  EXPECT_THAT(tests::error_of([&] {
                plan_memory(ListedTask({{30, 30, 30}}), config, 1, 1 << 10);
              }),
              HasSubstr("use a smaller --micro-tokens"));
}

TEST(PlanMemory, RefusesARecomputationThatTheModelHasNot) {
  TrainConfig config;
  config.recompute = nn::Recompute::layer;
  EXPECT_EQ(tests::error_of([&] { plan_memory(ListedTask(Batches{{10}}), config, 1, plenty); }),
            "--recompute layer: this model always keeps what its backward pass reads; use --recompute none");
}

}  // namespace
}  // namespace mylos::train
