// Digits in groups of 16 on all ranks of this program: BatchNorm normalises over the same groups in every launch.

#include "tasks/image_classification/image_config.hpp"
#include "tasks/interface/task.hpp"
#include "tests/families/resnet/resnet_engine.hpp"
#include "tests/support/rank_outcomes.hpp"
#include "tests/support/shared_directory.hpp"
#include "tests/tasks/recorded_runs.hpp"
#include "train/engine/run_checkpoints.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <optional>

namespace mylos::tests {
namespace {

namespace fs = std::filesystem;

/// Micro-batch per rank in images; 0: all of the rank's images of a step.
constexpr std::array<std::size_t, 3> images_at_once = {0, 16, 32};

class DigitsOnRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (!recorded_.obstacle.empty()) GTEST_SKIP() << recorded_.obstacle;
    recorded_.run.task.dev.clear();
    tasks::image_config(recorded_.run).batch_norm_group = 16;
  }

  /// Writes the checkpoint of a run at the recorded state after `done` steps, including SGD's momentum.
  fs::path write_checkpoint(const fs::path& directory, const train::Task& task, std::size_t done) const {
    const fs::path state = recorded_.recording / fmt::format("state-{}.safetensors", done);
    const RecordedResnet resnet = read_resnet(recorded_.recording / "config.json", 28, 28);
    ResnetEngine engine({resnet, Precision::float32, state, {}, {{{0}}}}, default_gemm_provider());
    engine.read_momentum(state);
    train::TrainConfig config = recorded_.run.engine;
    config.output = directory;
    train::RunCheckpoints checkpoints({*engine.ranks, engine.store, *engine.mode, *engine.optimizer, task}, config,
                                      {.steps = config.steps, .steps_per_epoch = task.steps_per_epoch()});
    checkpoints.prepare("{}");
    return checkpoints.save({.steps = done}, train::BestModel(config.best, {})).file;
  }

  /// Compares two steps after `done` in every mode, on all ranks and on one. Rounding soon flips a ReLU, so only the
  /// first steps can be compared.
  void compare_first_steps(const train::TrainConfig& start, train::Task& task, std::size_t done) const {
    const RunOutcome expected = run_on_one_rank(start, task, done + 2);
    for (std::size_t i = 0; i < std::size(every_mode); ++i) {
      train::TrainConfig config = in_mode(start, every_mode[i]);
      config.micro_batch = images_at_once[(i + done / 100 + launch().world().size()) % images_at_once.size()];
      const RunOutcome outcome = run_on_all_ranks(config, task, done + 2);
      EXPECT_LE(relative_difference(outcome.losses, expected.losses), 1e-5)
          << fmt::format("{} by {} after {} steps", to_string(every_mode[i]), config.micro_batch, done);
    }
  }

  RecordedRun recorded_ = recorded_digits();
};

/// From the beginning, and from each recorded state.
TEST_F(DigitsOnRanks, EveryModeGivesTheLossesOfOneRank) {
  const auto task = recorded_.task();
  const SharedDirectory directory;
  for (const std::size_t done : {0u, 100u, 200u, 300u}) {
    train::TrainConfig config = recorded_.run.engine;
    if (done > 0) {
      config.checkpoints.resume =
          parallel::on_first_rank(launch().world(), [&] { return write_checkpoint(directory.path(), *task, done); });
    }
    compare_first_steps(config, *task, done);
  }
}

TEST_F(DigitsOnRanks, DeterministicIsBitForBitInEveryMode) {
  constexpr std::size_t steps = 20;
  if (!std::has_single_bit(launch().world().size())) GTEST_SKIP() << "no power of two";
  const auto task = recorded_.task();
  train::TrainConfig config = recorded_.run.engine;
  config.parallel.deterministic = true;
  config.parallel.micro_batch_groups = 4;
  const RunOutcome expected = run_on_one_rank(config, *task, steps);
  for (const parallel::ModeKind mode : every_mode) {
    SCOPED_TRACE(to_string(mode));
    expect_same_bits(run_on_all_ranks(in_mode(config, mode), *task, steps), expected);
  }
}

}  // namespace
}  // namespace mylos::tests
