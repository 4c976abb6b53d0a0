// How often the host waits from the launch of a step to the launch of the next one, in runs on one rank and on all
// ranks of this program. tests/tasks/test_device_work.cpp counts everything in a step on one rank.

#include "tests/small_models/image_task.hpp"
#include "tests/small_models/span_task.hpp"
#include "tests/support/device_work.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/rank_outcomes.hpp"
#include "train/engine/trainer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace mylos::small_models {
namespace {

using parallel::ModeKind;
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

struct Job {
  std::string name;
  std::unique_ptr<train::Task> task;
  TrainConfig config;
};

/// Returns a model without state tensors, and one with.
std::vector<Job> jobs() {
  TrainConfig config;
  config.steps = 6;
  config.evaluate_every = 100;
  config.schedule = nn::ScheduleKind::constant;
  config.gemm.provider = default_gemm_provider();
  ImageTaskConfig images{.groups = 15, .images_per_group = 4, .groups_per_batch = 5};
  images.shape = {.image = {8, 8}, .first_channels = 4, .second_channels = 8};
  std::vector<Job> jobs;
  jobs.push_back({"BERT", std::make_unique<SpanTask>(uneven_spans()), config});
  config.optimizer.kind = train::OptimizerKind::sgd;
  jobs.push_back({"convolution", std::make_unique<ImageTask>(images), config});
  return jobs;
}

WaitRecorder run_alone(const Job& job) {
  WaitRecorder recorder;
  train::Trainer(job.config, *job.task).run({&recorder});
  return recorder;
}

/// Calls `check` with the waits of a run over `world` in every mode. Expects the losses of one rank.
template <class Check>
void for_each_mode(parallel::Communicator& world, const Check& check) {
  for (const Job& job : jobs()) {
    const WaitRecorder alone = run_alone(job);
    for (const ModeKind mode : tests::every_mode) {
      SCOPED_TRACE(job.name + " " + std::string(to_string(mode)));
      WaitRecorder recorder;
      train::Trainer(tests::in_mode(job.config, mode), *job.task, train::Ranks{world, tests::launch().placements()})
          .run({&recorder});
      check(recorder.waits);
      EXPECT_LE(tests::relative_difference(recorder.losses, alone.losses), 1e-5);
    }
  }
}

TEST(StepWaits, OnOneRankAreForTheResultsOfTheStepBefore) {
  for (const Job& job : jobs()) {
    SCOPED_TRACE(job.name);
    EXPECT_THAT(run_alone(job).waits, ElementsAre(results));
  }
}

/// The host waits for its agreement with other ranks in the same place; the exchange precedes those of the step.
TEST(StepWaits, OverNcclAreForTheResultsOfTheStepBefore) {
  if (tests::launch().world().size() == 1) GTEST_SKIP() << "a group of one exchanges nothing";
  const std::unique_ptr<parallel::Communicator> world = tests::launch().make_nccl_ranks({});
  for_each_mode(*world, [](const std::vector<std::string>& waits) { EXPECT_THAT(waits, ElementsAre(results)); });
}

/// Connections take memory of the device, so they are made before the trainer plans it, and not by the first step.
TEST(StepWaits, NcclConnectsTheGroupsOfTheModeBeforeTheFirstStep) {
  if (tests::launch().world().size() == 1) GTEST_SKIP() << "a group of one exchanges nothing";
  const std::unique_ptr<parallel::Communicator> world = tests::launch().make_nccl_ranks({});
  const std::vector<Job> all = jobs();
  const Job& job = all.front();
  for (const ModeKind mode : tests::every_mode) {
    const DeviceWork work;
    const train::Trainer trainer(tests::in_mode(job.config, mode), *job.task,
                                 train::Ranks{*world, tests::launch().placements()});
    const bool has_proved = std::ranges::count(work.labels(DeviceWork::Kind::kernel), "mylos::communicator::proof") > 0;
    // Only groups of some of the ranks need another connection than all ranks have.
    const bool has_groups = mode == ModeKind::hybrid && world->size() > 2 && tests::hybrid_shard_size() > 1;
    const bool connects = mode == ModeKind::replicated || has_groups;
    EXPECT_EQ(has_proved, connects) << to_string(mode);
  }
}

/// Arrays are copied to the host before they are sent, and back after they have arrived; the host waits for both, and
/// for the exchange.
TEST(StepWaits, OverMpiAreAlsoForExchangesAndCopies) {
  if (tests::launch().world().size() == 1) GTEST_SKIP() << "a group of one exchanges nothing";
  for_each_mode(tests::launch().world(), [&](std::vector<std::string> waits) {
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
