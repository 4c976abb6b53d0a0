// An interrupted and resumed run gives the same numbers as an uninterrupted one, bit for bit.

#include "core/base/files/files.hpp"
#include "core/base/process/signals.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "tests/small_models/image_task.hpp"
#include "tests/small_models/span_task.hpp"
#include "tests/small_models/text_task.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/trained_weights.hpp"
#include "train/engine/evaluation_files.hpp"
#include "train/engine/loop/trainer.hpp"
#include "train/engine/models/best_model.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <functional>

namespace mylos::small_models {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::trained_weights;

/// Records the reports of a run, and performs an action after one of its steps.
class ResumeLog final : public train::Reporter {
 public:
  void start(const train::RunStart& run) override { first_step = run.first_step; }
  void step(const train::StepReport& report) override {
    losses.push_back(report.loss);
    if (report.step == at) action();
  }
  void evaluation(const train::EvaluationReport& report) override {
    evaluations.push_back(report.metrics);
    best.push_back(report.best);
  }
  void checkpoint(const train::CheckpointReport& report) override { checkpoints.push_back(report); }

  std::size_t at = 0, first_step = 0;
  std::function<void()> action;
  std::vector<double> losses;
  std::vector<train::Metrics> evaluations;
  std::vector<bool> best;
  std::vector<train::CheckpointReport> checkpoints;
};

train::TrainConfig training() {
  train::TrainConfig config;
  config.steps = 14;
  config.learning_rate = 0.02;
  config.schedule = nn::ScheduleKind::cosine;
  config.warmup_steps = 3;
  config.gemm.provider = gemm_providers().front();
  config.evaluate_every = 3;
  config.best.patience = 4;
  return config;
}

train::TrainConfig image_training() {
  train::TrainConfig config = training();
  config.optimizer.name = "sgd";
  return config;
}

class Resume : public ::testing::Test {
 protected:
  template <class Value>
  static void expect_continued(const std::vector<Value>& whole, std::vector<Value> first,
                               const std::vector<Value>& second) {
    first.insert(first.end(), second.begin(), second.end());
    EXPECT_EQ(first, whole);
  }

  tests::TemporaryDirectory directory_;
};

/// A signal ends the run. State tensors have no optimizer slots.
TEST_F(Resume, StateSlotsAndTheBestModelAreThoseOfAnUninterruptedRun) {
  constexpr std::size_t stop = 5;
  ImageTask task;
  for (const nn::OptimizerKind& kind : nn::optimizer_kinds()) {
    train::TrainConfig config = training();
    config.optimizer.name = kind.name;
    ResumeLog whole, first, second;
    config.output = directory_ / "whole" / kind.name;
    train::Trainer uninterrupted(config, task);
    uninterrupted.run({&whole});
    config.output = directory_ / "run" / kind.name;
    first.at = stop - 1;  // when it is reported, the next step has been launched
    first.action = [] { mylos::SignalGuard::receive(SIGUSR1); };
    EXPECT_EQ(train::Trainer(config, task).run({&first}).signal, SIGUSR1);
    ASSERT_EQ(first.checkpoints.size(), 1u);
    EXPECT_EQ(first.checkpoints[0].file.filename(), parallel::checkpoint_file_name(stop));
    config.checkpoints.resume = parallel::resolve_checkpoint(config.output);
    train::Trainer resumed(config, task);
    EXPECT_EQ(resumed.run({&second}).steps, config.steps);
    EXPECT_EQ(second.first_step, stop);
    expect_continued(whole.losses, first.losses, second.losses);
    expect_continued(whole.evaluations, first.evaluations, second.evaluations);
    first.best.insert(first.best.end(), second.best.begin(), second.best.end());
    EXPECT_EQ(first.best, whole.best);
    EXPECT_EQ(trained_weights(task, resumed), trained_weights(task, uninterrupted)) << kind.name;
    for (const nn::OptimizerSetting& setting : kind.settings) {
      train::TrainConfig other = config;
      other.optimizer.value(setting.name) = setting.is_switch ? 1.0 : 0.5;
      if (!setting.is_saved) continue;
      std::string member(setting.name);
      std::ranges::replace(member, '-', '_');
      EXPECT_THAT(tests::error_of([&] { train::Trainer(other, task); }),
                  HasSubstr(fmt::format("{} {}, now {}", member, setting.initial, setting.is_switch ? 1.0 : 0.5)));
    }
  }
}

TEST_F(Resume, FromCheckpointsThatAreDue) {
  ImageTask task;
  train::TrainConfig config = image_training();
  config.output = directory_ / "run";
  config.checkpoints.every_steps = 4;
  config.checkpoints.keep = 3;
  ResumeLog log;
  train::Trainer(config, task).run({&log});
  std::vector<std::size_t> steps;
  for (const train::CheckpointReport& report : log.checkpoints) steps.push_back(report.step);
  EXPECT_THAT(steps, ElementsAre(4, 8, 12, 14)) << "the last step, too";
  EXPECT_EQ(parallel::list_checkpoints(config.output / "checkpoints").size(), 3u);
  config.checkpoints.resume = config.output / "checkpoints" / "step-000008.h5";
  ResumeLog again;
  train::Trainer(config, task).run({&again});
  EXPECT_EQ(again.losses, std::vector<double>(log.losses.begin() + 8, log.losses.end()));
}

// Without a learning rate the first evaluation stays the best. A continuation that was abandoned has replaced it.
TEST_F(Resume, TheBestModelOfAnAbandonedContinuationIsReplaced) {
  TextTask task;
  train::TrainConfig config = training();
  config.learning_rate = 0.0;
  config.best.patience = 0;
  config.output = directory_ / "run";
  config.checkpoints.every_steps = 8;
  ResumeLog log;
  train::Trainer(config, task).run({&log});
  EXPECT_THAT(log.best, ElementsAre(true, false, false, false, false));
  EXPECT_EQ(train::noted_best(config.output), 3u);
  config.checkpoints.resume = config.output / "checkpoints" / "step-000008.h5";
  ResumeLog same;
  train::Trainer(config, task).run({&same});
  EXPECT_THAT(same.best, ElementsAre(false, false, false));
  train::note_best(config.output, 12);
  fs::remove_all(config.output / "best");
  ResumeLog abandoned;
  train::Trainer(config, task).run({&abandoned});
  EXPECT_THAT(abandoned.best, ElementsAre(false, true, false));
  EXPECT_TRUE(fs::exists(config.output / "best"));
  EXPECT_EQ(train::noted_best(config.output), 12u);
}

std::vector<std::string> kept_models(const fs::path& output) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : list_directory(output / train::kept_models_name)) names.push_back(entry.name);
  return names;
}

// The three best by the loss of three steps each, of which the last is the best. What a killed run exported after its
// checkpoint is replaced or removed.
TEST_F(Resume, TheBestModelsAreKept) {
  SpanTaskConfig spans = uneven_spans();
  spans.evaluation_sequences = 0;
  SpanTask task(spans);
  ASSERT_EQ(task.evaluation(), nullptr);
  train::TrainConfig config = training();
  config.best = {.keep = 3};
  config.output = directory_ / "run";
  config.checkpoints.every_steps = 7;
  ResumeLog log;
  train::Trainer(config, task).run({&log});
  ASSERT_EQ(log.evaluations.size(), 5u);
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < 5; ++i) {
    ASSERT_EQ(log.evaluations[i][0].first, "training_loss");
    const std::size_t begin = 3 * i, end = std::min<std::size_t>(begin + 3, 14);
    double mean = 0.0;
    for (std::size_t step = begin; step < end; ++step) mean += log.losses[step];
    EXPECT_EQ(log.evaluations[i][0].second, mean / static_cast<double>(end - begin));
    order.emplace_back(log.evaluations[i][0].second, end);
  }
  std::ranges::sort(order);
  std::vector<std::string> expected = {std::to_string(order[1].second), std::to_string(order[2].second)};
  std::ranges::sort(expected);
  EXPECT_EQ(kept_models(config.output), expected);
  const std::string best = read_text(config.output / "best" / "model.safetensors");
  const std::string second = read_text(config.output / train::kept_model_path(order[1].second) / "model.safetensors");
  fs::create_directory(config.output / train::kept_model_path(11));  // of another continuation
  fs::create_directory(config.output / "best-12");                   // somebody's
  fs::remove(parallel::resolve_checkpoint(config.output));
  config.checkpoints.resume = config.output / "checkpoints" / "step-000007.h5";
  train::Trainer(config, task).run({});
  EXPECT_EQ(kept_models(config.output), expected);
  EXPECT_EQ(read_text(config.output / "best" / "model.safetensors"), best);
  EXPECT_EQ(read_text(config.output / train::kept_model_path(order[1].second) / "model.safetensors"), second);
  EXPECT_NE(best, second);
  EXPECT_TRUE(fs::exists(config.output / "best-12"));
  config.best = {.patience = 100};
  train::Trainer(config, task).run({});
  EXPECT_EQ(kept_models(config.output), std::vector<std::string>()) << "no longer wanted";
}

// Another peak learning rate or seed than the run's would silently give another curve (accelerate 4289, 662).
TEST_F(Resume, OfARunOfAnotherLengthIsRefused) {
  ImageTask task;
  train::TrainConfig config = image_training();
  config.output = directory_ / "run";
  config.schedule = nn::ScheduleKind::step;
  config.decay_steps = {5, 10};
  config.checkpoints.every_steps = 14;
  train::Trainer(config, task).run({});
  config.checkpoints.resume = parallel::resolve_checkpoint(config.output);
  const auto refused = [&](train::TrainConfig other, const std::string& what) {
    EXPECT_THAT(tests::error_of([&] { train::Trainer(other, task); }), HasSubstr(what));
  };
  train::TrainConfig other = config;
  other.learning_rate = 0.03;
  other.seed = 8;
  refused(other, "learning_rate 0.02, now 0.03");
  refused(other, "seed 42, now 8");
  other = config;
  other.steps = 20;
  refused(other, "step-000014.h5: belongs to a run with other settings: steps 14, now 20");
  other = config;
  other.optimizer.name = "adamw";
  refused(other, "optimizer sgd, now adamw; use those");
  other.optimizer.name = "lion";
  refused(other, "optimizer sgd, now lion; use those");
  other = config;
  other.optimizer.settings = {{"momentum", 0.5}, {"nesterov", 1.0}};
  refused(other, "momentum 0.9, now 0.5; nesterov 0, now 1");
  other.optimizer = {.name = "sgd", .decay_all = true};
  refused(other, "decay_all 0, now 1");
  other = config;
  other.learning_rate_min = 0.001;
  refused(other, "learning_rate_min 0, now 0.001");
  other.learning_rate_min = 0.0;
  other.schedule = nn::ScheduleKind::cosine;
  refused(other, "other settings: schedule step, now cosine");
  other = config;
  other.decay_steps = {5};
  other.decay_factor = 0.5;
  refused(other, "decay_steps 5,10, now 5; decay_factor 0.1, now 0.5; use those of the run");
  other = config;
  other.schedule = nn::ScheduleKind::warmup_stable_decay;
  refused(other, "schedule step, now warmup-stable-decay");
  TextTask text;
  EXPECT_THAT(tests::error_of([&] { train::Trainer(config, text); }), HasSubstr("step-000014.h5"));
}

TEST_F(Resume, AFullDiskStopsOrIsTold) {
  ImageTask task;
  train::TrainConfig config = image_training();
  config.evaluate_every = 100;
  config.output = directory_ / "run";
  config.checkpoints.every_steps = 5;
  const auto run_limited = [&](ResumeLog& log) {
    std::optional<tests::FileSizeLimit> limit;
    log.at = 8;
    log.action = [&limit] { limit.emplace(2000); };
    train::Trainer trainer(config, task);
    // Skip the final export, which would not fit either.
    return tests::error_of([&] { trainer.run({&log}); });
  };
  ResumeLog stopped, reported;
  EXPECT_THAT(run_limited(stopped), ::testing::ContainsRegex("step-000010.h5[.][0-9a-f]+[.]tmp: File too large"));
  EXPECT_EQ(stopped.losses.size(), 10u);
  EXPECT_EQ(parallel::resolve_checkpoint(config.output).filename(), "step-000005.h5");
  EXPECT_GT(parallel::verify_checkpoint(parallel::resolve_checkpoint(config.output)), 0u);
  config.checkpoints.stop_on_error = false;
  run_limited(reported);
  EXPECT_EQ(reported.losses.size(), 14u);
  ASSERT_EQ(reported.checkpoints.size(), 3u);
  EXPECT_EQ(reported.checkpoints[0].error, "");
  EXPECT_THAT(reported.checkpoints[1].error, HasSubstr("File too large"));
}

}  // namespace
}  // namespace mylos::small_models
