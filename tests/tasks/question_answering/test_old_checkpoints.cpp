#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "tasks/question_answering/squad_task.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"
#include "train/engine/loop/trainer.hpp"
#include "train/monitor/metrics_file.hpp"
#include "train/monitor/metrics_reader.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <vector>

namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<json> rows_of(const fs::path& output) {
  std::vector<json> rows;
  train::MetricsReader(output / "metrics.jsonl").read([&](json&& row) {
    if (!train::is_checkpoint_row(row)) rows.push_back(std::move(row));
  });
  return rows;
}

// A checkpoint of 4db94f6, which evaluated before saving and did not record due evaluations. The losses are those of
// that version, up to the effects of another CPU and GEMM provider.
TEST(OldCheckpoints, ARunGoesOnFromOneThatSaysNothingOfEvaluations) {
  const tests::TemporaryDirectory directory;
  const fs::path recorded = tests::source_dir() / "tests/golden/run_4db94f6";
  RunConfig run;
  run.task.model = recorded / "model";
  run.task.train = run.task.dev = recorded / "train.json";
  run.task.batch = 2;
  SquadConfig squad;
  squad.max_length = 40;
  squad.doc_stride = 8;
  run.settings = squad;
  SquadTask task(FileReader(), run, [](const std::string&) {});
  task.read_data();
  train::TrainConfig config;
  config.output = directory / "run";
  config.steps = 8;
  config.learning_rate = 1e-2;
  config.evaluate_every = 2;
  config.evaluate_on_start = true;
  config.best.patience = 9;
  config.checkpoints.every_steps = 6;
  config.gemm.provider = gemm_providers().front();
  fs::copy(recorded / "run", config.output, fs::copy_options::recursive);
  const std::vector<json> expected = rows_of(config.output);
  config.checkpoints.resume = parallel::resolve_checkpoint(config.output);
  EXPECT_FALSE(parallel::read_checkpoint_index(config.checkpoints.resume).record.has("evaluation_due"));

  train::Trainer trainer(config, task);
  train::cut_metrics(config.output / "metrics.jsonl", trainer.first_step(), trainer.evaluation_due());
  train::MetricsFile metrics(config.output / "metrics.jsonl");
  EXPECT_EQ(trainer.run({&metrics}).steps, 8u);
  const std::vector<json> rows = rows_of(config.output);
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["step"], expected[i]["step"]);
    const char* name = train::is_step_row(expected[i]) ? "loss" : "validation_loss";
    EXPECT_NEAR(rows[i].value(name, 0.0), expected[i].value(name, 0.0), 1e-4) << rows[i];
  }
}

}  // namespace
}  // namespace mylos::tasks
