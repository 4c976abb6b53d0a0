// A run that is stopped at any time, or cannot continue, loses nothing.

#include "core/base/error.hpp"
#include "core/base/files/directory_lock.hpp"
#include "core/base/process/signals.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "tests/small_models/image_task.hpp"
#include "tests/small_models/observed_task.hpp"
#include "tests/small_models/span_task.hpp"
#include "tests/support/temporary.hpp"
#include "train/engine/loop/trainer.hpp"
#include "train/engine/memory/memory.hpp"
#include "train/monitor/metrics_file.hpp"
#include "train/monitor/metrics_reader.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <random>
#include <thread>
#include <tuple>
#include <utility>

namespace mylos::small_models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Returns how often a run is stopped; MYLOS_STOP_ROUNDS overrides the default.
std::size_t rounds() {
  const char* text = std::getenv("MYLOS_STOP_ROUNDS");
  return text == nullptr ? 4 : std::strtoul(text, nullptr, 10);
}

/// Returns the records of metrics.jsonl without checkpoints and times.
std::vector<json> rows_of(const fs::path& output) {
  std::vector<json> rows;
  train::MetricsReader(output / "metrics.jsonl").read([&](json&& row) {
    if (train::is_checkpoint_row(row)) return;
    for (const char* name : {"seconds", "tokens_per_second", "images_per_second", "memory", "data_seconds",
                             "exchange_seconds", "update_seconds", "time"}) {
      row.erase(name);
    }
    rows.push_back(std::move(row));
  });
  return rows;
}

std::size_t last_step(const fs::path& output) {
  std::size_t last = 0;
  for (const json& row : rows_of(output)) last = std::max(last, row["step"].get<std::size_t>());
  return last;
}

class TrainingLoop : public ::testing::Test {
 protected:
  void SetUp() override {
    config_.output = directory_ / "run";
    config_.steps = 8;
    config_.learning_rate = 2e-3;
    config_.schedule = nn::ScheduleKind::constant;
    config_.gemm.provider = gemm_providers().front();
    config_.evaluate_every = 3;
    config_.evaluate_on_start = true;
    config_.best.patience = 9;
    config_.checkpoints.every_steps = 6;
    spans_.evaluation_sequences = 60;  // ten batches
  }

  /// Starts or resumes the run, as `mylos train` does.
  train::RunResult start(train::Task& task) const {
    train::TrainConfig config = config_;
    config.checkpoints.resume = parallel::resolve_checkpoint(config.output);
    train::Trainer trainer(config, task);
    fs::create_directories(config.output);
    train::cut_metrics(config.output / "metrics.jsonl", trainer.first_step(), trainer.evaluation_due());
    train::MetricsFile metrics(config.output / "metrics.jsonl");
    return trainer.run({&metrics});
  }
  train::RunResult start(const TaskObserver& observer) const {
    SpanTask spans(spans_);
    ObservedTask task(spans, observer);
    return start(task);
  }

  /// Returns the records of an uninterrupted run.
  std::vector<json> whole_rows() {
    const fs::path output = std::exchange(config_.output, directory_ / "whole");
    fs::remove_all(config_.output);
    start(TaskObserver{});
    return rows_of(std::exchange(config_.output, output));
  }
  void expect_resumed_as_whole() {
    EXPECT_EQ(start(TaskObserver{}).signal, 0);
    EXPECT_EQ(rows_of(config_.output), whole_rows());
    EXPECT_TRUE(fs::exists(config_.output / "last" / "model.safetensors"));
    EXPECT_EQ(tests::read_file(config_.output / "best" / "model.safetensors"),
              tests::read_file(directory_ / "whole" / "best" / "model.safetensors"));
  }
  parallel::CheckpointRecord record() const {
    return parallel::read_checkpoint_index(parallel::resolve_checkpoint(config_.output)).record;
  }

  tests::TemporaryDirectory directory_;
  train::TrainConfig config_;
  SpanTaskConfig spans_ = uneven_spans();
};

/// Counts the batches of a run, and sends a signal during the assembly of one of them.
struct Stopper {
  TaskObserver observer() {
    return {.on_training_batch = [this] { note(false); },
            .on_evaluation_batch = [this](std::size_t, Batch&) { note(true); }};
  }
  void note(bool evaluation) {
    if (batches > at && evaluation) ++evaluated_after;
    if (batches == at) {
      steps_before = last_step(output);
      SignalGuard::receive(SIGTERM);
    }
    ++batches;
  }
  fs::path output;
  std::size_t at = std::numeric_limits<std::size_t>::max();
  std::size_t batches = 0;
  std::size_t steps_before = 0;     ///< reported before the signal came
  std::size_t evaluated_after = 0;  ///< evaluation batches started after the signal
};

TEST_F(TrainingLoop, AStopAtAnyMomentSavesTheStepAndLosesNothing) {
  Stopper counter;
  const std::vector<json> whole = whole_rows();
  start(counter.observer());
  ASSERT_GT(counter.batches, 40u);
  std::mt19937 random(16);
  for (std::size_t round = 0; round < rounds(); ++round) {
    config_.output = directory_ / std::to_string(round);
    Stopper stopper;
    stopper.at = random() % counter.batches;
    stopper.output = config_.output;
    SCOPED_TRACE("stopped while batch " + std::to_string(stopper.at) + " was made");
    const train::RunResult stopped = start(stopper.observer());
    ASSERT_EQ(stopped.signal, SIGTERM);
    EXPECT_LE(stopper.evaluated_after, 1u);
    // The step that ran had not been reported, nor the one before.
    EXPECT_GE(stopped.steps, stopper.steps_before);
    EXPECT_LE(stopped.steps, stopper.steps_before + 2);
    EXPECT_EQ(stopped.steps, last_step(config_.output));
    EXPECT_EQ(record().integer("step"), stopped.steps);
    EXPECT_FALSE(fs::exists(config_.output / "last"));
    const train::RunResult rest = start(TaskObserver{});
    EXPECT_EQ(rest.signal, 0);
    EXPECT_EQ(rest.steps, config_.steps);
    EXPECT_EQ(rows_of(config_.output), whole);
    EXPECT_EQ(tests::read_file(config_.output / "last" / "model.safetensors"),
              tests::read_file(directory_ / "whole" / "last" / "model.safetensors"));
    fs::remove_all(config_.output);
  }
}

TEST_F(TrainingLoop, ASignalInTheFirstStepIsFollowedByNoOther) {
  config_.evaluate_on_start = false;
  std::size_t batches = 0;
  const train::RunResult stopped = start({.on_training_batch = [&] {
    if (++batches == 1) SignalGuard::receive(SIGUSR1);
  }});
  EXPECT_EQ(stopped.signal, SIGUSR1);
  EXPECT_EQ(stopped.steps, 1u);
  expect_resumed_as_whole();
}

TEST_F(TrainingLoop, AStopInAnEvaluationLeavesItDue) {
  std::size_t evaluated = 0;
  // The fourth batch after step 3, and then the second to last one of the last evaluation.
  const TaskObserver observer = {.on_evaluation_batch = [&](std::size_t, Batch&) {
    if (++evaluated == 14 || evaluated == 43) SignalGuard::receive(SIGTERM);
  }};
  EXPECT_EQ(start(observer).steps, 3u);
  EXPECT_EQ(evaluated, 14u);
  EXPECT_EQ(record().integer("evaluation_due"), 1u);
  EXPECT_FALSE(fs::exists(config_.output / "best"));
  EXPECT_EQ(start(observer).steps, 8u);
  EXPECT_EQ(evaluated, 43u);
  EXPECT_EQ(record().integer("step"), 8u);
  EXPECT_EQ(record().integer("evaluation_due"), 1u);
  expect_resumed_as_whole();
}

TEST_F(TrainingLoop, AStopBeforeStep1SavesStep0) {
  const TaskObserver observer = {.on_evaluation_batch = [](std::size_t index, Batch&) {
    if (index == 2) SignalGuard::receive(SIGTERM);
  }};
  const train::RunResult stopped = start(observer);
  EXPECT_EQ(stopped.signal, SIGTERM);
  EXPECT_EQ(stopped.steps, 0u);
  EXPECT_EQ(parallel::resolve_checkpoint(config_.output).filename(), "step-000000.h5");
  EXPECT_EQ(record().integer("evaluation_due"), 1u);
  EXPECT_TRUE(rows_of(config_.output).empty());
  expect_resumed_as_whole();
}

TEST_F(TrainingLoop, ASignalBeforeTheFirstBatchSavesToo) {
  {
    const SignalGuard signals;
    SignalGuard::receive(SIGUSR1);
    EXPECT_EQ(start(TaskObserver{}).signal, SIGUSR1);
  }
  EXPECT_EQ(parallel::resolve_checkpoint(config_.output).filename(), "step-000000.h5");
  const fs::file_time_type written = fs::last_write_time(parallel::resolve_checkpoint(config_.output));
  {
    const SignalGuard signals;  // again: existing files are not rewritten
    SignalGuard::receive(SIGUSR1);
    EXPECT_EQ(start(TaskObserver{}).signal, SIGUSR1);
  }
  EXPECT_EQ(fs::last_write_time(parallel::resolve_checkpoint(config_.output)), written);
  expect_resumed_as_whole();
}

TEST_F(TrainingLoop, EvaluationsMayBeEpochsApart) {
  config_.evaluate_every = 1;
  config_.evaluate_every_epochs = 100;  // takes precedence: only the last step
  std::size_t evaluations = 0;
  start({.on_evaluation_batch = [&](std::size_t index, Batch&) { evaluations += index == 0 ? 1 : 0; }});
  EXPECT_EQ(evaluations, 2u) << "before the first step, and after the last";
}

TEST_F(TrainingLoop, ASignalAfterTheLastEvaluationEndsACompleteRun) {
  EXPECT_EQ(start({.on_results = [] { SignalGuard::receive(SIGTERM); }}).signal, SIGTERM) << "the first of three";
  config_.evaluate_every = 100;  // only the last step
  config_.output = directory_ / "other";
  EXPECT_EQ(start({.on_results = [] { SignalGuard::receive(SIGTERM); }}).signal, 0);
  EXPECT_TRUE(fs::exists(config_.output / "last" / "model.safetensors"));
}

// Killed between the periodic checkpoint of a step and the next one, after its evaluation had been reported.
TEST_F(TrainingLoop, AnEvaluationAfterACheckpointIsToldOnce) {
  EXPECT_EQ(start(TaskObserver{}).signal, 0);
  EXPECT_EQ(record().integer("step"), 8u);
  EXPECT_EQ(record().integer("evaluation_due"), 1u);
  expect_resumed_as_whole();
  const fs::path checkpoints = config_.output / "checkpoints";
  fs::remove(checkpoints / "step-000008.h5");
  tests::write_file(checkpoints / "latest", "step-000006.h5\n");
  EXPECT_EQ(record().integer("evaluation_due"), 1u);
  expect_resumed_as_whole();
}

TEST_F(TrainingLoop, AnExportThatFailsEndsTheRunAfterACheckpoint) {
  const TaskObserver exports = {.on_export = [](const fs::path& directory) {
    if (directory.filename() == "best") fail("cannot write best/: No space left on device");
  }};
  const TaskObserver results = {.on_results = [] { fail("cannot write results.json: No space left on device"); }};
  for (const auto& [observer, name] : {std::pair(exports, "best/"), std::pair(results, "results.json")}) {
    config_.output = directory_ / ("without " + fs::path(name).stem().string());
    EXPECT_EQ(tests::error_of([&] { start(observer); }),
              std::string("cannot write ") + name + ": No space left on device; the checkpoint after step 3 is saved");
    EXPECT_EQ(record().integer("evaluation_due"), 1u);
    expect_resumed_as_whole();
  }
}

TEST_F(TrainingLoop, AReporterThatFailsEndsTheRunAfterACheckpoint) {
  class Failing final : public train::Reporter {
    void step(const train::StepReport& report) override {
      if (report.step == 5) fail("nobody listens");
    }
  } failing;
  SpanTask task(spans_);
  EXPECT_EQ(tests::error_of([&] { train::Trainer(config_, task).run({&failing}); }),
            "nobody listens; the checkpoint after step 6 is saved")
      << "step 6 was launched before step 5 was reported";
  EXPECT_EQ(parallel::resolve_checkpoint(config_.output).filename(), "step-000006.h5");
  EXPECT_EQ(record().integer("evaluation_due"), 1u);
}

TEST_F(TrainingLoop, ALastSaveThatFailsEndsACompleteRun) {
  // Nothing can be saved after step 8, because a directory has the name of the checkpoint.
  const TaskObserver observer = {.on_training_batch = [this] {
    fs::create_directories(config_.output / "checkpoints" / "step-000008.h5" / "taken");
  }};
  EXPECT_THAT(tests::error_of([&] { start(observer); }), HasSubstr("step-000008.h5: Is a directory"));
  EXPECT_EQ(last_step(config_.output), 8u);
  EXPECT_EQ(rows_of(config_.output), whole_rows());
  EXPECT_TRUE(fs::exists(config_.output / "last" / "model.safetensors"));
}

/// A lost output directory is noticed by the next thing that would be written there: a checkpoint, an evaluation or the
/// last export. What was trained is saved beside it, and the directory is not touched.
TEST_F(TrainingLoop, AnOutputDirectoryThatIsLostIsLeftAlone) {
  for (const auto& [every, evaluate, saved] : {std::tuple{5, 100, 5}, {100, 3, 3}, {100, 100, 8}}) {
    SCOPED_TRACE(saved);
    config_.checkpoints.every_steps = static_cast<std::size_t>(every);
    config_.evaluate_every = static_cast<std::size_t>(evaluate);
    config_.evaluate_on_start = false;
    spans_.evaluation_sequences = evaluate == 3 ? 60 : 0;
    fs::create_directories(config_.output);
    DirectoryLock lock(config_.output);
    lock.sign();
    config_.lock = &lock;
    std::size_t batches = 0;
    const TaskObserver observer = {.on_training_batch = [&] {
      if (++batches == 2) fs::remove_all(config_.output);
    }};
    const std::string error = tests::error_of([&] { start(observer); });
    config_.lock = nullptr;
    EXPECT_THAT(error, ::testing::ContainsRegex(fmt::format(
                           "^`output {0}` belongs to this run no longer: {0}/.lock was removed; the checkpoint after "
                           "step {1} is {0}.lost-[0-9a-f]+/step-00000{1}.h5; a new run continues from it with `resume",
                           config_.output.string(), saved)));
    EXPECT_FALSE(fs::exists(config_.output));
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      if (entry.path().filename().string().starts_with("run.lost-")) {
        EXPECT_GT(parallel::verify_checkpoint(parallel::resolve_checkpoint(entry.path())), 0u);
        fs::remove_all(entry.path());
      }
    }
  }
}

/// A step makes the first batch of the next one.
TEST_F(TrainingLoop, TheSecondsOfAStepAreThoseOfItsOwnWork) {
  if (!runs_on_host) GTEST_SKIP() << "a device works on a step while the host makes batches";
  static constexpr double pause = 0.02;
  config_.evaluate_every = 100;
  config_.evaluate_on_start = false;
  for (const bool waits : {false, true}) {
    config_.waits_for_each_step = waits;
    config_.output = directory_ / (waits ? "waits" : "does not wait");
    const auto begin = std::chrono::steady_clock::now();
    start({.on_training_batch = [] { std::this_thread::sleep_for(std::chrono::duration<double>(pause)); }});
    const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
    std::vector<double> seconds;
    train::MetricsReader(config_.output / "metrics.jsonl").read([&](json&& row) {
      if (row["kind"] == "step") seconds.push_back(row["seconds"].get<double>());
    });
    ASSERT_EQ(seconds.size(), config_.steps);
    double sum = 0.0;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      EXPECT_GE(seconds[i], i + 1 < config_.steps ? pause : 0.0) << "step " << i + 1;
      sum += seconds[i];
    }
    EXPECT_LE(sum, whole.count());
  }
}

/// A step lasts until the next one, so that time between steps counts.
TEST_F(TrainingLoop, TheSecondsOfStepsIncludeReports) {
  static constexpr double pause = 0.3;  // far longer than a step
  struct SlowReporter final : train::Reporter {
    void step(const train::StepReport& report) override {
      seconds.push_back(report.seconds);
      std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    }
    std::vector<double> seconds;
  };
  config_.steps = 4;
  config_.evaluate_every = 100;
  config_.evaluate_on_start = false;
  config_.checkpoints.every_steps = 0;
  SpanTask task(spans_);
  SlowReporter reporter;
  train::Trainer(config_, task).run({&reporter});
  ASSERT_EQ(reporter.seconds.size(), config_.steps);
  // The first report follows the launch of step 2, which ends on a host when it is launched.
  for (std::size_t i = 2; i < reporter.seconds.size(); ++i) EXPECT_GE(reporter.seconds[i], pause) << "step " << i + 1;
}

/// A batch takes memory for a moment, after the first reading.
TEST_F(TrainingLoop, MemoryIsReadEvery20Steps) {
  if (!runs_on_host) GTEST_SKIP() << "the memory of the host is not that of the run";
  if (!train::reset_peak_resident_memory()) GTEST_SKIP() << "this system does not let a process reset its peak";
  config_.steps = 44;
  config_.evaluate_every = 100;
  config_.evaluate_on_start = false;
  const std::size_t taken = std::size_t{64} << 20;
  std::size_t batches = 0;
  volatile char last = 0;
  start({.on_training_batch = [&] {
    if (++batches == 10 || batches == 30) last = std::vector<char>(taken * batches / 10, 'x').back();
  }});
  std::vector<double> memory;
  train::MetricsReader(config_.output / "metrics.jsonl").read([&](json&& row) {
    if (row["kind"] == "step") memory.push_back(row["memory"].get<double>());
  });
  ASSERT_EQ(memory.size(), 44u);
  for (std::size_t i = 1; i < memory.size(); ++i) {
    if (i == 19 || i == 39) {
      EXPECT_GT(memory[i], memory[i - 1] + 0.5 * static_cast<double>(taken)) << "step " << i + 1;
    } else if (i != 43) {
      EXPECT_EQ(memory[i], memory[i - 1]) << "step " << i + 1;
    }
  }
}

TEST_F(TrainingLoop, RowsOfAnImageTaskCountImages) {
  config_.steps = 2;
  config_.evaluate_on_start = false;
  ImageTask images({.images_per_group = 16, .groups_per_batch = 6});
  const TaskObserver observer;
  ObservedTask task(images, observer);
  start(task);
  const json row = rows_of(config_.output).front();
  EXPECT_EQ(row.at("groups"), 6);
  EXPECT_EQ(row.at("images"), 96);
  for (const char* name : {"tokens", "sequences"}) EXPECT_FALSE(row.contains(name)) << name;
}

TEST_F(TrainingLoop, AModelThatIsNotFiniteBeforeStep1HasNothingToKeep) {
  ImageTask images;
  const TaskObserver observer = {.on_evaluation_batch = [](std::size_t, Batch& batch) {
    spoil_pixels(batch, std::numeric_limits<float>::infinity());
  }};
  ObservedTask task(images, observer);
  EXPECT_THAT(tests::error_of([&] { start(task); }),
              StartsWith("the evaluation before step 1: the model's outputs are not finite: its weights are damaged"));
  EXPECT_FALSE(fs::exists(config_.output / "last"));
}

/// Records the first step that updated the weights, and may send a signal after it.
class FirstUpdate final : public train::Reporter {
 public:
  explicit FirstUpdate(bool stops) : stops_(stops) {}
  void step(const train::StepReport& report) override {
    if (report.skipped || step_ != 0) return;
    step_ = report.step;
    if (stops_) SignalGuard::receive(SIGTERM);
  }
  std::size_t step() const { return step_; }

 private:
  bool stops_;
  std::size_t step_ = 0;
};

// A checkpoint after an update that spoils the weights, before the evaluation that reveals it. If steps were skipped
// earlier, a resumed run does not know the learning rate of that update, so it cannot undo it.
TEST_F(TrainingLoop, NoWeightsAreKeptWhereTheLastUpdateIsNotKnown) {
  spans_.precision = config_.precision = Precision::float16;
  config_.evaluate_on_start = false;
  for (const double scale : {1024.0, train::LossScale::largest}) {
    SCOPED_TRACE(scale);
    SpanTask task(spans_);
    config_.initial_loss_scale = scale;
    train::TrainConfig harmless = config_;
    harmless.output.clear();
    harmless.steps = 12;
    harmless.learning_rate = 1e-3;
    FirstUpdate first(false), stopper(true);
    train::Trainer(harmless, task).run({&first});
    ASSERT_EQ(first.step() == 1, scale == 1024.0) << first.step();

    config_.output = directory_ / fmt::format("scale {}", scale);
    config_.learning_rate = 1e30;
    config_.evaluate_every = first.step();
    config_.steps = 2 * first.step();
    fs::create_directories(config_.output);
    ASSERT_EQ(train::Trainer(config_, task).run({&stopper}).signal, SIGTERM);
    ASSERT_EQ(record().integer("evaluation_due"), 1u);
    EXPECT_THAT(tests::error_of([&] { start(TaskObserver{}); }),
                AllOf(StartsWith(fmt::format("the evaluation after step {}: ", first.step())),
                      HasSubstr("remove it to continue from an earlier checkpoint")));
    EXPECT_EQ(fs::exists(config_.output / "last"), scale == 1024.0);
  }
}

}  // namespace
}  // namespace mylos::small_models
