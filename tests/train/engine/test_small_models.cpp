// A trainer evaluates every model, exports it so that a run can start from it, and finds its tensors by name.

#include "data/huggingface/safetensors.hpp"
#include "tests/small_models/image_task.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/written_models.hpp"
#include "train/engine/loop/evaluator.hpp"
#include "train/engine/loop/trainer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace mylos::small_models {
namespace {

using ::testing::HasSubstr;

/// Records the reports of a run.
class SmallModelLog final : public train::Reporter {
 public:
  void step(const train::StepReport& report) override { losses.push_back(report.loss); }
  void evaluation(const train::EvaluationReport& report) override { evaluations.push_back(report.metrics); }

  std::vector<double> losses;
  std::vector<train::Metrics> evaluations;
};

constexpr const char* running_mean = "resnet.embedder.embedder.normalization.running_mean";

/// Trains a ResNet with BatchNorm by SGD. Its files are in config.output.
class SmallModels : public testing::Test {
 protected:
  void SetUp() override {
    config_.steps = 40;
    config_.learning_rate = 0.05;
    config_.schedule = nn::ScheduleKind::constant;
    config_.optimizer.name = "sgd";
    config_.gemm.provider = gemm_providers().front();
    config_.evaluate_every = 10;
    config_.best.by = "accuracy";
    config_.output = output_.path();
  }

  /// Returns the metrics of an exported model, in a task that starts from it.
  static train::Metrics metrics_of(const std::filesystem::path& exported) {
    ImageTask task({.start = exported});
    return train::Evaluator(task, Precision::float32, {.provider = gemm_providers().front()}).evaluate();
  }
  static void expect_same(const train::Metrics& metrics, const train::Metrics& expected) {
    ASSERT_EQ(metrics.size() + 1, expected.size()) << "and the training loss";
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      EXPECT_EQ(metrics[i].first, expected[i].first);
      EXPECT_NEAR(metrics[i].second, expected[i].second, 1e-5) << metrics[i].first;
    }
  }

  tests::TemporaryDirectory output_;
  train::TrainConfig config_;
};

TEST_F(SmallModels, ExportsHaveTheMetricsThatTheRunReported) {
  ImageTask task;
  SmallModelLog log;
  const train::RunResult result = train::Trainer(config_, task).run({&log});
  EXPECT_EQ(result.steps, config_.steps);
  EXPECT_LT(log.losses.back(), 0.8 * log.losses.front());
  ASSERT_EQ(log.evaluations.size(), 4u);
  expect_same(metrics_of(output_ / "best"), result.best);
  expect_same(metrics_of(output_ / "last"), log.evaluations.back());
  EXPECT_THAT(tests::read_file(output_ / "scores.json"), HasSubstr("\"accuracy\""));
}

TEST_F(SmallModels, ATensorOfStateThatIsMissingIsAnError) {
  ImageTask task;
  config_.steps = 1;
  train::Trainer(config_, task).run({});
  std::vector<std::vector<float>> values;
  std::vector<data::NamedTensor> tensors;
  const data::SafetensorsFile exported(FileReader(), output_ / "last" / "model.safetensors");
  for (const data::TensorInfo& tensor : exported.tensors()) {
    if (tensor.name == running_mean) continue;
    values.push_back(exported.read_float(tensor.name));
    tensors.push_back({tensor.name, tensor.shape, values.back()});
  }
  std::filesystem::create_directory(output_ / "without");
  data::write_safetensors(output_ / "without" / "model.safetensors", tensors);
  EXPECT_THAT(tests::error_of([&] { metrics_of(output_ / "without"); }),
              HasSubstr(std::string("the model has no ") + running_mean));
}

TEST_F(SmallModels, TensorsAreReadByNameOrRefused) {
  ImageTask task;
  const train::Trainer trainer(config_, task);
  std::vector<float> values(4, 1.0f);
  trainer.read_tensor(running_mean, values);
  EXPECT_EQ(values, std::vector<float>(4, 0.0f));
  EXPECT_THAT(tests::error_of([&] { trainer.read_tensor("third.norm.weight", values); }),
              HasSubstr("parameter table: no tensor is called third.norm.weight"));
  values.resize(3);
  EXPECT_THAT(tests::error_of([&] { trainer.read_tensor(running_mean, values); }),
              HasSubstr(std::string("tensor ") + running_mean + ": 3 values for 4"));
}

}  // namespace
}  // namespace mylos::small_models
