// How often the host waits from the launch of a step to the launch of the next one, in runs on one rank and on all
// ranks of this program. tests/tasks/test_device_work.cpp counts everything in a step on one rank.

#include "tests/small_models/rank_jobs.hpp"
#include "tests/support/device_work.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/rank_outcomes.hpp"
#include "train/engine/loop/trainer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mylos::small_models {
namespace {

using parallel::StrategyKind;
using ::testing::Contains;
using ::testing::ElementsAre;
using tests::DeviceWork;
using train::TrainConfig;

constexpr const char* results = "mylos::TrainingStep::wait";

/// Records the losses of a run, and the waits of the host between the launches of two steps in its middle.
class WaitRecorder final : public train::Reporter {
 public:
  void launch(std::size_t step) override {
    if (step == 4) work_ = std::make_unique<DeviceWork>();
    if (step == 5) {
      waits = work_->labels(DeviceWork::Kind::wait);
      work_.reset();
    }
  }

  void step(const train::StepReport& report) override { losses.push_back(report.loss); }

  std::vector<std::string> waits;
  std::vector<double> losses;

 private:
  std::unique_ptr<DeviceWork> work_;
};

/// Returns a model without state tensors, and one with; on more than two ranks, where connections take longest, only
/// the first.
std::vector<Job> jobs() {
  TrainConfig config;
  config.steps = 6;
  config.evaluate_every = 100;
  config.schedule = nn::ScheduleKind::constant;
  config.gemm.provider = default_gemm_provider();
  std::vector<Job> jobs = uneven_jobs(config);
  jobs.resize(tests::launch().world().size() > 2 ? 1 : 2);
  return jobs;
}

/// Returns every mode, or on more than two ranks the one that then has several groups.
std::span<const StrategyKind> strategies() {
  static constexpr StrategyKind hybrid[] = {StrategyKind::hybrid};
  return tests::launch().world().size() > 2 ? std::span<const StrategyKind>(hybrid) : tests::every_strategy;
}

WaitRecorder run_alone(const Job& job, train::Task& task) {
  WaitRecorder recorder;
  train::Trainer(job.config, task).run({&recorder});
  return recorder;
}

/// Calls `check` with the waits of a run over `world` in each of the modes. Expects the losses of one rank.
template <class Check>
void for_each_strategy(parallel::Communicator& world, const Check& check) {
  for (const Job& job : jobs()) {
    const std::unique_ptr<train::Task> task = job.make();
    const WaitRecorder alone = run_alone(job, *task);
    for (const StrategyKind strategy : strategies()) {
      SCOPED_TRACE(job.name + " " + std::string(to_string(strategy)));
      WaitRecorder recorder;
      train::Trainer(tests::with_strategy(job.config, strategy), *task,
                     train::Ranks{world, tests::launch().placements()})
          .run({&recorder});
      check(recorder.waits);
      EXPECT_LE(tests::relative_difference(recorder.losses, alone.losses), 1e-5);
    }
  }
}

TEST(StepWaits, OnOneRankAreForTheResultsOfTheStepBefore) {
  for (const Job& job : jobs()) {
    SCOPED_TRACE(job.name);
    EXPECT_THAT(run_alone(job, *job.make()).waits, ElementsAre(results));
  }
}

/// The host waits for its agreement with other ranks in the same place; the exchange precedes those of the step.
TEST(StepWaits, OverNcclAreForTheResultsOfTheStepBefore) {
  if (tests::launch().world().size() == 1) GTEST_SKIP() << "a group of one exchanges nothing";
  const std::unique_ptr<parallel::Communicator> world = tests::launch().make_nccl_ranks({});
  for_each_strategy(*world, [](const std::vector<std::string>& waits) { EXPECT_THAT(waits, ElementsAre(results)); });
}

/// Connections take memory of the device, so they are made before the trainer plans it, and not by the first step.
TEST(StepWaits, NcclConnectsTheGroupsOfTheModeBeforeTheFirstStep) {
  if (tests::launch().world().size() == 1) GTEST_SKIP() << "a group of one exchanges nothing";
  const std::unique_ptr<parallel::Communicator> world = tests::launch().make_nccl_ranks({});
  const Job job = jobs().front();
  const std::unique_ptr<train::Task> task = job.make();
  // Only groups of some of the ranks need another connection than all ranks have.
  for (const StrategyKind strategy : {StrategyKind::replicated, StrategyKind::sharded, StrategyKind::hybrid}) {
    const DeviceWork work;
    const train::Trainer trainer(tests::with_strategy(job.config, strategy), *task,
                                 train::Ranks{*world, tests::launch().placements()});
    const bool has_proved = std::ranges::count(work.labels(DeviceWork::Kind::kernel), "mylos::communicator::proof") > 0;
    const bool has_groups = strategy == StrategyKind::hybrid && world->size() > 2 && tests::hybrid_shard_size() > 1;
    EXPECT_EQ(has_proved, strategy == StrategyKind::replicated || has_groups) << to_string(strategy);
  }
}

/// Arrays are copied to the host before they are sent, and back after they have arrived; the host waits for both, and
/// for the exchange.
TEST(StepWaits, OverMpiAreAlsoForExchangesAndCopies) {
  if (tests::launch().world().size() == 1) GTEST_SKIP() << "a group of one exchanges nothing";
  for_each_strategy(tests::launch().world(), [](std::vector<std::string> waits) {
    for (const char* const of_mpi :
         {"mylos::communicator::begin", "mylos::communicator::wait", "mylos::communicator::write_back"}) {
      EXPECT_THAT(waits, Contains(of_mpi));
      std::erase(waits, of_mpi);
    }
    EXPECT_THAT(waits, ElementsAre(results));
  });
}

}  // namespace
}  // namespace mylos::small_models
