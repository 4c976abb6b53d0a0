// A Llama trained from random values on chess games, recorded from PyTorch: losses, gradient norms and the score.

#include "core/base/json.hpp"
#include "core/base/text_file.hpp"
#include "core/kernels/gemm.hpp"
#include "tasks/language_modeling/language_task.hpp"
#include "tests/support/paths.hpp"
#include "train/engine/evaluator.hpp"
#include "train/engine/trainer.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;

class ChessRecorder final : public train::Reporter {
 public:
  void step(const train::StepReport& report) override { steps.push_back(report); }
  std::vector<train::StepReport> steps;
};

class RecordedChess : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(reference_)) GTEST_SKIP() << reference_ << " is not there (MYLOS_REFERENCE)";
    if (!fs::exists(games_)) GTEST_SKIP() << games_ << " is not there (MYLOS_DATA)";
    run_.task.model = reference_;
    run_.task.train = games_ / "games-train.jsonl";
    run_.task.dev = games_ / "games-dev.jsonl";
    run_.task.batch = 8;
    LanguageConfig config;
    config.max_length = 256;
    config.long_documents = data::LongDocuments::truncate;
    config.order = reference_ / "order.jsonl";
    run_.settings = config;
    train::TrainConfig& engine = run_.engine;
    engine.steps = 400;
    engine.warmup_steps = 40;
    engine.learning_rate = 1e-3;
    engine.optimizer.adamw = {.beta2 = 0.95, .weight_decay = 0.1};
    engine.gemm.provider = default_gemm_provider();
  }

  static Json read(const fs::path& file) { return parse_json(read_text_file(file), file.string()); }

  /// Losses within 2e-6 over the first hundred steps and 1e-5 over all: PyTorch's own noise is 2.4e-7 and 3.5e-7.
  void compare_steps(const std::vector<train::StepReport>& steps) const {
    const std::string recorded = read_text_file(reference_ / "steps.jsonl");
    const auto lines = split_lines(recorded);
    ASSERT_EQ(steps.size(), lines.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Json expected = parse_json(lines[i], "steps.jsonl");
      SCOPED_TRACE("step " + std::to_string(i + 1));
      const double loss = expected["loss"].get<double>(), norm = expected["gradient_norm"].get<double>();
      EXPECT_EQ(steps[i].tokens, expected["tokens"].get<std::size_t>());
      EXPECT_NEAR(steps[i].learning_rate, expected["learning_rate"].get<double>(), 1e-12);
      EXPECT_NEAR(steps[i].loss, loss, (i < 100 ? 2e-6 : 1e-5) * loss);
      EXPECT_NEAR(steps[i].gradient_norm, norm, 1e-4 * norm);
    }
  }

  fs::path reference_ = tests::shared_reference() / "llama/chess", games_ = tests::shared_data() / "chess";
  RunConfig run_;
};

TEST_F(RecordedChess, BeginsWithTheRecordedScore) {
  LanguageTask task(run_, [](const std::string&) {});
  EXPECT_EQ(task.evaluation()->samples().predicted(), 28404u);
  const train::Metrics metrics = train::Evaluator(task, Precision::float32, run_.engine.gemm).evaluate();
  const Json before = read(reference_ / "results.json")["before"];
  EXPECT_NEAR(*train::find_metric(metrics, "validation_loss"), before["mean_nll"].get<double>(), 1e-5);
  EXPECT_NEAR(*train::find_metric(metrics, "accuracy"), before["accuracy"].get<double>(), 1e-9);
}

TEST_F(RecordedChess, TrainsAsRecorded) {
  LanguageTask task(run_, [](const std::string&) {});
  ChessRecorder recorder;
  train::Trainer(run_.engine, task).run({&recorder});
  compare_steps(recorder.steps);
  const Json after = read(reference_ / "results.json")["after"], found = parse_json(task.results_text(), "results");
  const double perplexity = after["perplexity"].get<double>();
  EXPECT_NEAR(found["perplexity"].get<double>(), perplexity, 1e-4 * perplexity);
  EXPECT_NEAR(found["accuracy"].get<double>(), after["accuracy"].get<double>(), 1e-4);
}

}  // namespace
}  // namespace mylos::tasks
