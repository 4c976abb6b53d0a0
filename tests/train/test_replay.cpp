// The first steps of a fine-tuning run recorded from PyTorch, from the same weights, head and order.

#include "data/json.hpp"
#include "data/model_names.hpp"
#include "data/text_file.hpp"
#include "tests/support/paths.hpp"
#include "train/squad_task.hpp"
#include "train/trainer.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t replayed_steps = 20;

class StepRecorder final : public Reporter {
 public:
  void step(const StepReport& report) override { steps.push_back(report); }
  std::vector<StepReport> steps;
};

/// Where the model is that `mylos fetch minilm` brings; empty where it was not fetched.
fs::path minilm() {
  try {
    return data::resolve_model("minilm");
  } catch (const std::exception&) {
    return {};
  }
}

SquadConfig recorded_squad(const fs::path& reference) {
  SquadConfig config;
  config.model = minilm();
  config.train = tests::shared_data() / "squad/v1.1/train.json";
  config.head = reference / "qa_head.safetensors";
  config.order = reference / "order.jsonl";
  config.batch = 8;
  config.dropout = 0.0;
  return config;
}

/// The recorded run's settings. Its warm-up is longer than what is replayed, so that the schedule is the same.
TrainConfig recorded_engine(Precision precision) {
  TrainConfig config;
  config.steps = replayed_steps;
  config.learning_rate = 1e-4;
  config.warmup_steps = 40;
  config.optimizer.adamw.weight_decay = 0.01;
  config.precision = precision;
  return config;
}

void replay(Precision precision, double tolerance) {
  const fs::path reference = tests::shared_reference() / "minilm-v1.1";
  if (!fs::exists(reference)) GTEST_SKIP() << reference << " is not there (MYLOS_REFERENCE)";
  if (!fs::exists(tests::shared_data() / "squad")) GTEST_SKIP() << tests::shared_data() << " is not there (MYLOS_DATA)";
  if (minilm().empty()) GTEST_SKIP() << "MiniLM is not there: run `mylos fetch minilm`";

  SquadTask task(recorded_squad(reference), precision, 42, [](const std::string&) {});
  StepRecorder recorder;
  Trainer(recorded_engine(precision), task).run({&recorder});

  ASSERT_EQ(recorder.steps.size(), replayed_steps);
  const std::string recorded = data::read_text_file(reference / "steps.jsonl");
  const auto lines = data::split_lines(recorded);
  for (std::size_t i = 0; i < replayed_steps; ++i) {
    const data::Json expected = data::parse_json(lines[i], "steps.jsonl");
    const StepReport& actual = recorder.steps[i];
    SCOPED_TRACE("step " + std::to_string(i + 1));
    EXPECT_EQ(actual.tokens, expected["tokens"].get<std::size_t>());
    EXPECT_DOUBLE_EQ(actual.learning_rate, expected["learning_rate"].get<double>());
    EXPECT_NEAR(actual.loss, expected["loss"].get<double>(), tolerance * expected["loss"].get<double>());
    // Norms are recorded to six decimals; they are no part of the losses' bound.
    EXPECT_NEAR(actual.gradient_norm, expected["gradient_norm"].get<double>(),
                10.0 * tolerance * expected["gradient_norm"].get<double>());
  }
}

TEST(replay_of_recorded_minilm, Float) { replay(Precision::float32, 1e-5); }
TEST(replay_of_recorded_minilm, Bfloat16) { replay(Precision::bfloat16, 2e-2); }
/// One rounding to half's 11 bits, 2^-11.
TEST(replay_of_recorded_minilm, Half) { replay(Precision::float16, 5e-4); }

}  // namespace
}  // namespace mylos::train
