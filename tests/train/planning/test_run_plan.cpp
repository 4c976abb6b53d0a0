#include "train/planning/run_plan.hpp"

#include "tests/train/engine/listed_task.hpp"
#include "train/engine/samples/sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::train {
namespace {

using parallel::StrategyKind;
using testing::HasSubstr;

constexpr std::size_t length = 10, parameters = 10 * 4096;

/// Ten units of 4096 elements, and 32 samples of ten rows in batches of 4.
class RunPlan : public testing::Test {
 protected:
  StrategyPlan plan(StrategyKind strategy, std::size_t ranks,
                    const std::function<void(TrainConfig&, PlanTarget&)>& change = {}) {
    TrainConfig config;
    config.parallel.strategy = strategy;
    PlanTarget target;
    target.machine = {.name = "test", .memory = std::size_t{1} << 30, .link = 1e9};
    target.rate = {.flops = 1e9, .bandwidth = 1e9, .origin = ""};
    target.ranks = {.ranks = ranks, .nodes = 1, .of_node = ranks, .on_host = false};
    if (change) change(config, target);
    return plan_run({model_, samples_}, config, target);
  }

  SizedModel model_{10, 4096, false, 0};
  LengthStream samples_{std::vector<std::size_t>(32, length), 4, 1};
};

TEST_F(RunPlan, CountsOperationsBytesAndSteps) {
  const StrategyPlan one = plan(StrategyKind::replicated, 1);
  EXPECT_TRUE(one.fits);
  EXPECT_DOUBLE_EQ(one.step.compute, 4 * length * flops_per_row / 1e9);
  EXPECT_DOUBLE_EQ(one.step.optimizer, static_cast<double>(parameters) * 36.0 / 1e9);
  EXPECT_DOUBLE_EQ(one.tokens, 40.0);
  EXPECT_DOUBLE_EQ(one.training, 16 * one.step.total());  // two epochs of eight steps
  EXPECT_EQ(one.memory.optimizer, parameters * 8);
}

TEST_F(RunPlan, AnOptimizerCostsWhatItsSlotsDo) {
  const auto with = [&](const char* name) {
    return plan(StrategyKind::replicated, 1, [&](TrainConfig& config, PlanTarget&) { config.optimizer.name = name; });
  };
  const StrategyPlan adamw = with("adamw"), lion = with("lion");
  EXPECT_DOUBLE_EQ(lion.step.optimizer, adamw.step.optimizer * 28.0 / 36.0);
  EXPECT_EQ(lion.memory.optimizer, parameters * 4);
  // A checkpoint holds master weights and slots; best/ and last/ come once.
  EXPECT_LT(lion.checkpoints, adamw.checkpoints);
}

TEST_F(RunPlan, RanksShareTheStepAndTheOptimizer) {
  const StrategyPlan one = plan(StrategyKind::replicated, 1), two = plan(StrategyKind::sharded, 2);
  EXPECT_DOUBLE_EQ(two.step.compute, one.step.compute / 2);
  EXPECT_DOUBLE_EQ(two.step.optimizer, one.step.optimizer / 2);
  EXPECT_EQ(one.step.exchange, 0.0);
  EXPECT_GT(two.step.exchange, 0.0);
  EXPECT_LT(two.memory.optimizer, one.memory.optimizer);
}

TEST_F(RunPlan, TheLargestMicroBatchFitsAndOneMoreDoesNot) {
  const StrategyPlan small = plan(StrategyKind::replicated, 1, [](TrainConfig&, PlanTarget& target) {
    target.machine.memory = parameters * 16 + 7 * length * bytes_per_row;
  });
  EXPECT_EQ(small.largest, 7u);
  EXPECT_EQ(small.memory.largest.samples, 4u);
  EXPECT_EQ(small.memory.asked, 4u);
}

TEST_F(RunPlan, TheLargestMicroBatchIsToldOfEveryRecomputationThatTheModelCan) {
  EXPECT_EQ(plan(StrategyKind::replicated, 1).largest_of_each.size(), 1u);
  const SizedModel recomputing(10, 4096, true, 0);
  TrainConfig config;
  config.parallel.strategy = StrategyKind::replicated;
  PlanTarget target;
  target.machine = {.name = "test", .memory = parameters * 16 + 7 * length * bytes_per_row, .link = 1e9};
  target.rate = {.flops = 1e9, .bandwidth = 1e9, .origin = ""};
  target.ranks = {.ranks = 1, .nodes = 1, .of_node = 1, .on_host = false};
  const StrategyPlan plan = plan_run({recomputing, samples_}, config, target);
  ASSERT_EQ(plan.largest_of_each.size(), 3u);
  EXPECT_EQ(plan.largest_of_each[0].recompute, nn::Recompute::none);
  EXPECT_EQ(plan.largest_of_each[0].samples, 7u);
  EXPECT_EQ(plan.largest_of_each[2].recompute, nn::Recompute::layer);
  EXPECT_EQ(plan.largest_of_each[2].samples, 14u) << "this model then takes half as much";
}

/// In hybrid, a rank has connections in two groups.
TEST_F(RunPlan, ConnectionsTakeMemoryThatDependsOnTheMode) {
  const auto planned = [this](StrategyKind strategy) {
    return plan(strategy, 4, [](TrainConfig&, PlanTarget& target) {
      target.ranks.nodes = target.ranks.of_node = 2;
      target.machine.memory = parameters * 16 + 20 * length * bytes_per_row;
      target.connections = [](const Machine&, StrategyKind strategy) {
        return (strategy == StrategyKind::hybrid ? 5 : 2) * length * bytes_per_row;
      };
      EXPECT_EQ(connections_of(target, StrategyKind::sharded), 2 * length * bytes_per_row);
      EXPECT_EQ(room_of(target, StrategyKind::replicated) - room_of(target, StrategyKind::hybrid),
                3 * length * bytes_per_row);
    });
  };
  EXPECT_EQ(planned(StrategyKind::replicated).largest, 18u);
  const StrategyPlan hybrid = planned(StrategyKind::hybrid);
  const std::size_t room = parameters * 16 + 15 * length * bytes_per_row;
  EXPECT_EQ(hybrid.largest, (room - (hybrid.memory.total() - hybrid.memory.activations)) / (length * bytes_per_row));
}

TEST_F(RunPlan, ARefusedMicroBatchShowsItsOwnFigure) {
  const StrategyPlan four = plan(StrategyKind::replicated, 1, [](TrainConfig& config, PlanTarget& target) {
    config.micro_batch = 4;
    target.machine.memory = parameters * 16 + 2 * length * bytes_per_row;
  });
  EXPECT_FALSE(four.fits);
  EXPECT_EQ(four.memory.largest.samples, 4u);
  EXPECT_EQ(four.memory.activations, 4 * length * bytes_per_row) << "one sequence at a time would fit";
}

TEST_F(RunPlan, SaysWhatWouldFit) {
  const StrategyPlan none = plan(StrategyKind::replicated, 2,
                                 [](TrainConfig&, PlanTarget& target) { target.machine.memory = parameters * 16; });
  EXPECT_FALSE(none.fits);
  EXPECT_EQ(none.largest, 0u);
  EXPECT_THAT(none.obstacle, HasSubstr("`mode sharded`"));
  EXPECT_EQ(none.memory.values, parameters * 4);  // its parts are reported all the same
  EXPECT_EQ(none.memory.largest.samples, 2u) << "of the batch that was asked for, not of the last that was tried";
  EXPECT_EQ(none.memory.activations, 2 * length * bytes_per_row);
}

TEST_F(RunPlan, RecomputationTakesTheOperationsThatTheModelSays) {
  const SizedModel recomputing(10, 4096, true, 0);
  const auto compute = [&](nn::Recompute recompute) {
    TrainConfig config;
    config.parallel.strategy = StrategyKind::replicated;
    config.recompute = recompute;
    PlanTarget target;
    target.machine = {.name = "test", .memory = std::size_t{1} << 30, .link = 1e9};
    target.rate = {.flops = 1e9, .bandwidth = 1e9, .origin = ""};
    return plan_run({recomputing, samples_}, config, target).step.compute;
  };
  EXPECT_DOUBLE_EQ(compute(nn::Recompute::none), 4 * length * flops_per_row / 1e9);
  EXPECT_DOUBLE_EQ(compute(nn::Recompute::layer), 4.0 / 3.0 * 4 * length * flops_per_row / 1e9);
}

TEST_F(RunPlan, RecomputationThatAModelCannotIsRefused) {
  // The trainer itself rejects it.
  EXPECT_THROW(plan(StrategyKind::replicated, 1,
                    [](TrainConfig& config, PlanTarget&) { config.recompute = nn::Recompute::layer; }),
               std::runtime_error);
}

TEST_F(RunPlan, CheckpointsTakeTimeByTheirNumber) {
  const auto every = [](std::size_t steps) {
    return [steps](TrainConfig& config, PlanTarget& target) {
      config.checkpoints.every_steps = steps;
      config.checkpoints.every_seconds = 0.0;
      target.storage = 1e6;
    };
  };
  const double models = static_cast<double>(parameters) * 8 / 1e6,
               checkpoint = static_cast<double>(parameters) * 12 / 1e6;
  EXPECT_DOUBLE_EQ(plan(StrategyKind::replicated, 1, every(0)).checkpoints, models);
  EXPECT_DOUBLE_EQ(plan(StrategyKind::replicated, 1, every(4)).checkpoints, models + 4 * checkpoint);
  model_.freeze(std::vector<std::string>{"weight0", "weight1", "weight7"});
  EXPECT_DOUBLE_EQ(plan(StrategyKind::replicated, 1, every(0)).checkpoints, models);
  EXPECT_DOUBLE_EQ(plan(StrategyKind::replicated, 1, every(4)).checkpoints,
                   models + 0.7 * 4 * checkpoint + 0.3 * static_cast<double>(parameters) * 4 / 1e6)
      << "frozen values once";
}

TEST_F(RunPlan, EfficiencyBeginsAtOneAndFallsWithTheNetwork) {
  const auto of = [this](double bandwidth) {
    return plan(StrategyKind::replicated, 4,
                [bandwidth](TrainConfig&, PlanTarget& target) { target.network.bandwidth = bandwidth; })
        .efficiency;
  };
  const auto fast = of(1e12), slow = of(1e6);
  ASSERT_EQ(fast.size(), 13u);
  EXPECT_EQ(fast.back().first, 4096u);
  EXPECT_DOUBLE_EQ(fast.front().second, 1.0);
  EXPECT_EQ(fast[2], slow[2]);  // one node
  EXPECT_LT(slow[3].second, fast[3].second);
}

/// A model that saves more per operation than the measured one also moves more data, at the memory's bandwidth.
TEST_F(RunPlan, ANarrowerModelTakesLongerForAnOperation) {
  const ComputeRate lumped{.flops = 1e9, .bandwidth = 1e9, .origin = ""};
  EXPECT_DOUBLE_EQ(seconds_per_flop(lumped, 5.0), 1e-9);
  const ComputeRate measured{.flops = 1e9, .bandwidth = 1e10, .kept_per_flop = 0.1, .origin = ""};
  EXPECT_DOUBLE_EQ(seconds_per_flop(measured, 0.1), 1e-9) << "the model that was measured";
  const double slower = seconds_per_flop(measured, 0.2), faster = seconds_per_flop(measured, 0.05);
  EXPECT_GT(slower, 1e-9);
  EXPECT_NEAR(slower - 1e-9, 2.0 * (1e-9 - faster), 1e-18);
  EXPECT_GT(seconds_per_flop({.flops = 1e9, .bandwidth = 1.0, .kept_per_flop = 9.0, .origin = ""}, 0.1), 0.0);
  const double kept = static_cast<double>(bytes_per_row) / flops_per_row;
  EXPECT_DOUBLE_EQ(kept_bytes_per_flop(model_, {.samples = 4, .rows = 40, .longest = 10}), kept);
  EXPECT_DOUBLE_EQ(plan(StrategyKind::replicated, 1).kept_per_flop, kept);
}

TEST_F(RunPlan, ContentionIsTheMachines) {
  const auto waited = [this](double contention) {
    return plan(StrategyKind::sharded, 2,
                [=](TrainConfig&, PlanTarget& target) { target.machine.contention = contention; })
        .step.exposed;
  };
  EXPECT_GT(waited(0.5), waited(0.0));
}

TEST_F(RunPlan, SumsInAFixedOrderTakeMemoryOfTheDevice) {
  constexpr std::size_t bucket = parallel::default_bucket;
  const auto exchange = [this](bool bfloat16, std::size_t bytes) {
    return plan(StrategyKind::replicated, 4,
                [=](TrainConfig& config, PlanTarget&) {
                  config.parallel.bfloat16_gradients = bfloat16;
                  config.parallel.bucket = bytes;
                })
        .memory.exchange;
  };
  EXPECT_EQ(exchange(false, bucket), 0u) << "NCCL sums floats in its own buffers";
  EXPECT_GE(exchange(true, bucket), parallel::device_exchange_bytes(4));
  EXPECT_EQ(exchange(true, bucket) - exchange(true, bucket / 2), parallel::device_exchange_bytes(4) / 2);
}

TEST_F(RunPlan, MpiNeedsHostMemoryOnGpusOnly) {
  EXPECT_EQ(plan(StrategyKind::replicated, 4).host_staging, parameters * sizeof(float) + 4 * sizeof(double))
      << "gradients of all units, and the losses of a batch";
  EXPECT_LT(plan(StrategyKind::sharded, 4).host_staging, parameters * sizeof(float));
  EXPECT_GT(plan(StrategyKind::sharded, 4).host_staging, 0u);
  EXPECT_EQ(plan(StrategyKind::replicated, 1).host_staging, 0u);
  const auto on_host = [](TrainConfig&, PlanTarget& target) { target.ranks.on_host = true; };
  EXPECT_EQ(plan(StrategyKind::replicated, 4, on_host).host_staging, 0u);
}

TEST(GpuKinds, SayWhichWereNeverCompared) {
  EXPECT_TRUE(find_gpu_kind("a100-80")->is_compared);
  for (const char* kind : {"gh200", "b200", "mi250x", "mi300a", "mi300x"}) {
    ASSERT_NE(find_gpu_kind(kind), nullptr) << kind;
    EXPECT_FALSE(find_gpu_kind(kind)->is_compared) << kind;
    EXPECT_GT(find_gpu_kind(kind)->peak(Precision::bfloat16), 0.0) << kind;
  }
}

TEST(GpuKinds, KnowHowManyOfAmdANodeHas) {
  EXPECT_EQ(find_gpu_kind("mi250x")->of_node, 8u) << "two GPUs of each MI250X";
  EXPECT_EQ(find_gpu_kind("mi300a")->of_node, 4u);
  EXPECT_EQ(find_gpu_kind("mi250x")->architecture, amd_gpu(0x90a));
}

TEST(AssumedRate, NamesAPrecisionThatTheKindHas) {
  const auto complaint = [](const char* kind, Precision precision) -> std::string {
    try {
      assumed_rate(*find_gpu_kind(kind), precision);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint("v100-16", Precision::bfloat16), "`gpu v100-16`: it has no bfloat16; use `precision half`");
  EXPECT_EQ(complaint("a100-40", Precision::bfloat16), "");
  EXPECT_EQ(find_gpu_kind("b100"), nullptr);
}

TEST(PossibleModes, AreThoseThatSplitSomething) {
  EXPECT_EQ(possible_strategies({.ranks = 1}).size(), 1u);
  EXPECT_EQ(possible_strategies({.ranks = 4, .nodes = 1, .of_node = 4}).size(), 4u);
  EXPECT_EQ(possible_strategies({.ranks = 8, .nodes = 2, .of_node = 4}).size(), 5u);
}

}  // namespace
}  // namespace mylos::train
