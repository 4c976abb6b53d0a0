#include "train/engine/memory/memory_plan.hpp"

#include "tests/support/temporary.hpp"
#include "tests/train/engine/listed_task.hpp"

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

TEST(PlanMemory, CountsTheScratchOfDevices) {
  const RankCounts device{.on_host = false, .threads = 100}, few{.on_host = false, .threads = 3}, host{.on_host = true};
  const BatchShape evaluated = {.samples = 8, .rows = 8, .longest = 1};
  EXPECT_EQ(plan_memory(ListedTask(Batches{{10, 10}}, {}, 1, elements, false, 3000), {}, 1, plenty, device).scratch,
            6000u);
  EXPECT_EQ(plan_memory(ListedTask(Batches{{10, 10}}, {}, 1, elements, false, 3000), {}, 1, plenty, host).scratch, 0u);
  const MemoryPlan plan =
      plan_memory(ListedTask(Batches{{10, 10}}, evaluated, 1, elements, false, 3000), {}, 1, plenty, device);
  EXPECT_EQ(plan.scratch, 24000u) << "of the evaluation";
  EXPECT_EQ(plan_memory(ListedTask(Batches{{10, 10}}, evaluated, 1, elements, false, 3000), {}, 1, plenty, few).scratch,
            9000u)
      << "of what runs at once";
  EXPECT_EQ(plan.total(), elements * 16 + 20 * bytes_per_row + 24000);
}

TEST(PlanMemory, SixteenBitValuesHaveFloatMasterWeights) {
  TrainConfig config;
  config.precision = Precision::bfloat16;
  EXPECT_EQ(plan_memory(ListedTask(Batches{{10}}), config, 1, plenty).values, elements * (2 + 4));
}

TEST(PlanMemory, SgdHasOneSlot) {
  TrainConfig config;
  config.optimizer.name = "sgd";
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

TEST(PlanMemory, TakesARecordedMicroBatchWhateverIsFree) {
  const ListedTask task({{10, 10, 10, 10, 10, 10, 10}});
  const std::size_t fixed = elements * 16;
  TrainConfig config;
  config.recorded_layout = {.ranks = 1, .micro_batch = 3};
  for (const std::size_t available : {plenty, fixed + 40 * bytes_per_row, fixed + 30 * bytes_per_row}) {
    const MemoryPlan plan = plan_memory(task, config, 1, available);
    EXPECT_EQ(plan.limit.samples, 3u);
    EXPECT_EQ(plan.largest.rows, 30u);
  }
  EXPECT_EQ(plan_memory(task, config, 1, fixed + 29 * bytes_per_row).limit.samples, 2u) << "it does not fit";
  EXPECT_EQ(plan_memory(task, config, 1, plenty, {.ranks = 2, .of_node = 2}).limit.samples, 4u) << "other ranks";
  config.micro_batch = 5;
  EXPECT_EQ(plan_memory(task, config, 1, plenty).limit.samples, 5u) << "the user asks for another";
}

/// A stream of samples that are groups of images; batches count images.
class GroupsOfImages final : public SampleStream {
 public:
  explicit GroupsOfImages(std::vector<std::size_t> images) : images_(std::move(images)) {}
  std::size_t steps_per_epoch() const override { return 1; }
  std::vector<std::size_t> global_batch(std::size_t) const override { return images_; }
  WorkKind work() const override {
    return {.name = "images", .singular = "image", .samples = "groups", .sample = "group", .sizes_batches = true};
  }
  std::size_t rows_of(std::size_t sample) const override { return sample; }
  double weight(std::span<const std::size_t>) const override { return 1.0; }

 private:
  std::vector<std::size_t> images_;
};

TEST(PlanMemory, TheMicroBatchCountsImagesWhereSamplesAreGroupsOfThem) {
  const SizedModel model(1, elements, false, 0);
  const GroupsOfImages images({4, 4, 4, 5});
  const Workload workload(model, images);
  TrainConfig config;
  const auto largest = [&](std::size_t available) { return plan_memory(workload, config, 1, available).largest; };
  EXPECT_EQ(largest(plenty).rows, 17u);
  config.micro_batch = 8;
  EXPECT_EQ(largest(plenty).rows, 8u);
  EXPECT_EQ(largest(plenty).samples, 2u);
  EXPECT_EQ(images.work().batch_size(largest(plenty)), 8u);
  config.micro_batch = 3;
  EXPECT_EQ(largest(plenty).rows, 5u) << "a group at least";
  config.micro_batch = 0;
  config.recorded_layout = {.ranks = 1, .micro_batch = 8};
  EXPECT_EQ(largest(plenty).rows, 8u) << "it was recorded in images";
  config.recorded_layout.reset();
  EXPECT_EQ(largest(elements * 16 + 9 * bytes_per_row).samples, 2u) << "halved until it fits";
}

TEST(PlanMemory, EveryRankNeedsAGroup) {
  const SizedModel model(1, elements, false, 0);
  const GroupsOfImages images({4, 4, 4});
  const Workload workload(model, images);
  EXPECT_NO_THROW(plan_memory(workload, {}, 1, plenty, {.ranks = 3, .of_node = 3}));
  EXPECT_EQ(tests::error_of([&] { plan_memory(workload, {}, 1, plenty, {.ranks = 4, .of_node = 4}); }),
            "a full batch has 3 groups, fewer than the 4 ranks; use smaller groups, a larger `batch` or fewer ranks");
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
            "1.00), 512.00 MiB are free; it fits with `max-length 524256`");
}

/// Returns the advice for a run with room for all its fixed memory and `rows` rows of activations.
std::string advice_with(const ListedTask& task, const TrainConfig& config, std::size_t rows) {
  const std::string error =
      tests::error_of([&] { plan_memory(task, config, 1, elements * 16 + rows * bytes_per_row); });
  return error.substr(std::min(error.size(), error.find("; ") + 2));
}

TEST(PlanMemory, SaysWithWhatItWouldFit) {
  const ListedTask task({{10, 10, 10, 10, 10, 10, 10, 10}});
  TrainConfig config;
  config.micro_batch = 8;
  EXPECT_EQ(advice_with(task, config, 45), "it fits with `micro-batch 4`");
  config.micro_batch = 1000;
  EXPECT_EQ(advice_with(task, config, 25), "it fits with `micro-batch 2`");
  EXPECT_EQ(advice_with(task, config, 5), "use a smaller model");
  config = {};
  config.micro_tokens = 80;
  EXPECT_EQ(advice_with(task, config, 25), "it fits with `micro-tokens 20`");
  EXPECT_EQ(advice_with(task, config, 10), "it fits with `micro-tokens 10`");
  config = {};
  config.accumulation = 1;
  EXPECT_EQ(advice_with(task, config, 25), "it fits with `gradient-accumulation-steps 4`");
  config = {};
  EXPECT_EQ(advice_with(task, config, 5), "use a smaller model") << "one by one already";
}

TEST(PlanMemory, SaysWhereRecomputingFits) {
  const ListedTask task({{20, 20}}, {}, 1, elements, true);
  TrainConfig config;
  EXPECT_EQ(advice_with(task, config, 15), "it fits with `recompute layer`");
  EXPECT_EQ(advice_with(task, config, 9), "use a smaller model");
  config.micro_batch = 2;
  EXPECT_EQ(advice_with(task, config, 25), "it fits with `micro-batch 1`, or with `recompute layer`");
  EXPECT_EQ(advice_with(task, config, 12), "it fits with `micro-batch 1` `recompute layer`");
}

TEST(PlanMemory, SaysWhichLengthFits) {
  const ListedTask task({{384, 384}});
  TrainConfig config;
  EXPECT_EQ(advice_with(task, config, 300), "it fits with `max-length 288`");
  EXPECT_EQ(advice_with(task, config, 160), "it fits with `max-length 160`");
  EXPECT_EQ(advice_with(task, config, 159), "use a smaller model") << "no shorter one is offered";
  config.micro_batch = 2;
  EXPECT_EQ(advice_with(task, config, 300), "it fits with `max-length 288` `micro-batch 1`");
  config = {};
  config.micro_tokens = 400;
  EXPECT_EQ(advice_with(task, config, 300), "it fits with `max-length 288` `micro-tokens 288`");
}

TEST(PlanMemory, SaysHowManyLeavesFit) {
  const ListedTask task({{10, 10, 10, 10, 10, 10, 10, 10}});
  TrainConfig config;
  config.parallel.deterministic = true;
  config.parallel.micro_batch_groups = 4;
  const std::size_t enough = plan_memory(task, config, 1, plenty).total();
  config.parallel.micro_batch_groups = 2;
  EXPECT_THAT(tests::error_of([&] { plan_memory(task, config, 1, enough); }),
              testing::EndsWith("; it fits with `leaves 4`"));
}

TEST(PlanMemory, TakesTheNumberOfMicroBatchesThatIsAsked) {
  TrainConfig config;
  config.accumulation = 3;
  const MemoryPlan plan = plan_memory(ListedTask({{10, 20, 30, 40}}), config, 1, plenty);
  EXPECT_EQ(plan.largest.samples, 2u);
  EXPECT_EQ(plan.largest.rows, 70u) << "10, 20, 30 and 40";
  EXPECT_EQ(plan.strategy.micro_batches, 3u);
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
            "`micro-tokens 60`: the longest sequence that is trained on has 80 tokens; use at least that many");
  EXPECT_NO_THROW(plan_memory(ListedTask({{10, 20}, {30, 70, 80}}), config, 1, plenty)) << "step 2 is not run";
}

TEST(PlanMemory, RefusesARecomputationThatTheModelHasNot) {
  TrainConfig config;
  config.recompute = nn::Recompute::layer;
  EXPECT_EQ(tests::error_of([&] { plan_memory(ListedTask(Batches{{10}}), config, 1, plenty); }),
            "`recompute layer`: this model cannot recompute activations; use `recompute none`");
}

/// Returns a model of many units, so that two of them are small.
ListedTask many_units() { return ListedTask({{10, 10, 10, 10}}, {}, 20, 1 << 16); }

constexpr RankCounts four_ranks{.ranks = 4, .nodes = 1, .of_node = 4};

std::size_t least_bytes(parallel::StrategyKind strategy) {
  TrainConfig config;
  config.micro_batch = 1;
  config.parallel.strategy = strategy;
  return plan_memory(many_units(), config, 1, plenty, four_ranks).total();
}

TEST(PlanMemory, CountsWhatARankHoldsInEachMode) {
  const std::size_t parameters = 20 * (1 << 16) * sizeof(float);
  TrainConfig config;
  config.parallel.strategy = parallel::StrategyKind::sharded;
  const MemoryPlan plan = plan_memory(many_units(), config, 1, plenty, four_ranks);
  EXPECT_EQ(plan.optimizer, 2 * parameters / 4);
  EXPECT_LT(plan.values, parameters / 2);
  EXPECT_LT(plan.gradients, parameters / 2);
  EXPECT_EQ(plan.largest.rows, 10u) << "a rank's share";
  EXPECT_EQ(plan.strategy.kind, parallel::StrategyKind::sharded);
  EXPECT_EQ(plan.layout.shards, 4u);
}

TEST(PlanMemory, TakesARecordedModeWhateverIsFree) {
  TrainConfig config;
  config.recorded_layout = {.ranks = 4, .micro_batch = 1, .strategy = parallel::StrategyKind::sharded};
  EXPECT_EQ(plan_memory(many_units(), config, 1, plenty, four_ranks).layout.strategy, parallel::StrategyKind::sharded);
  config.parallel.strategy = parallel::StrategyKind::replicated;
  EXPECT_EQ(plan_memory(many_units(), config, 1, plenty, four_ranks).layout.strategy,
            parallel::StrategyKind::replicated);
  config.parallel.strategy.reset();
  config.recorded_layout->strategy = parallel::StrategyKind::replicated;
  const std::size_t little = least_bytes(parallel::StrategyKind::sharded);
  EXPECT_EQ(plan_memory(many_units(), config, 1, little, four_ranks).layout.strategy, parallel::StrategyKind::sharded)
      << "what was recorded does not fit";
}

TEST(PlanMemory, ExchangeInSixteenBitsTakesMemory) {
  TrainConfig config;
  const std::size_t received = runs_on_host ? parallel::exchange_bytes(4) : 0;  // in host memory
  EXPECT_EQ(plan_memory(many_units(), config, 1, plenty, four_ranks).exchange, received);
  EXPECT_EQ(plan_memory(many_units(), config, 1, plenty, {}).exchange, 0u) << "one rank";
  config.parallel.bfloat16_gradients = true;
  EXPECT_GT(plan_memory(many_units(), config, 1, plenty, four_ranks).exchange, received);
  config = {};
  config.parallel.bucket = 3 << 20;
  EXPECT_EQ(plan_memory(many_units(), config, 1, plenty, four_ranks).exchange, runs_on_host ? std::size_t{6} << 20 : 0);
}

TEST(PlanMemory, WhatDoesNotFitWholeIsShardedUnlessAModeIsGiven) {
  using parallel::StrategyKind;
  const std::size_t whole = least_bytes(StrategyKind::replicated);
  EXPECT_LT(least_bytes(StrategyKind::sharded), whole);
  EXPECT_EQ(plan_memory(many_units(), {}, 1, whole, four_ranks).layout.strategy, StrategyKind::replicated);
  EXPECT_EQ(plan_memory(many_units(), {}, 1, whole - 1, four_ranks).layout.strategy, StrategyKind::sharded);
  TrainConfig config;
  config.parallel.strategy = StrategyKind::replicated;
  EXPECT_THAT(tests::error_of([&] { plan_memory(many_units(), config, 1, whole - 1, four_ranks); }),
              testing::EndsWith("; it fits with `mode sharded`"));
  EXPECT_THAT(tests::error_of([&] { plan_memory(many_units(), config, 1, 1 << 20, four_ranks); }),
              testing::EndsWith("; use a smaller model"));
  EXPECT_THAT(tests::error_of([&] { plan_memory(many_units(), {}, 1, 1 << 20, four_ranks); }),
              HasSubstr("MiB are needed"));
}

TEST(PlanMemory, SaysHowManyRanksFit) {
  using parallel::StrategyKind;
  const auto needed = [](StrategyKind strategy, std::size_t ranks) {
    TrainConfig config;
    config.micro_batch = 1;
    config.parallel.strategy = strategy;
    return plan_memory(many_units(), config, 1, plenty,
                       {.ranks = ranks, .nodes = 1, .of_node = ranks, .on_host = false})
        .total();
  };
  const auto advice = [](std::size_t available) {
    return tests::error_of([&] { plan_memory(many_units(), {}, 1, available, {.on_host = false}); });
  };
  ASSERT_LT(needed(StrategyKind::sharded_gradients, 4), needed(StrategyKind::sharded_gradients, 2));
  EXPECT_THAT(advice(needed(StrategyKind::sharded_gradients, 2)),
              testing::EndsWith("; it fits on 2 GPUs with `mode sharded-gradients`"));
  EXPECT_THAT(advice(needed(StrategyKind::sharded, 8)), testing::EndsWith("; it fits on 8 GPUs with `mode sharded`"));
}

}  // namespace
}  // namespace mylos::train
