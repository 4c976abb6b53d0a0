#include "data/huggingface/safetensors.hpp"
#include "tests/app/tiny_run.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

/// Runs with numbers that are no longer finite.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class DivergedRuns : public EvaluatedRun {
 protected:
  /// Runs with a second step that spoils the weights; the following evaluation detects it.
  ProgramRun spoil(const Words& more = {}) const {
    write_tiny_model(model_, {.eight_overflows = true});
    const fs::path order = directory_ / "order.jsonl";
    write_file(order, "[[\"q01\", 0]]\n[[\"q11\", 0]]\n[[\"q01\", 0]]\n");
    return run_mylos(joined({"train", "--model",      model_, "--train",      train_, "--dev", train_, "--order",
                             order,   "--output",     run_,   "--steps",      "3",    "--lr",  "1e-2", "--max-length",
                             "60",    "--doc-stride", "20",   "--eval-every", "2"},
                            more));
  }
};

TEST_F(DivergedRuns, ALossThatIsNotFiniteStopsAndKeepsTheWeights) {
  write_tiny_model(model_, {.head_scale = 1e38f});
  const ProgramRun run = train(run_, {"--steps", "5"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_TRUE(run.error_lines().back().starts_with("mylos: error: step 1: loss ")) << run.errors;
  EXPECT_TRUE(fs::exists(run_ / "last" / "model.safetensors"));
}

std::vector<float> word_embeddings(const fs::path& model) {
  const data::SafetensorsFile file(FileReader(), model / "model.safetensors");
  return file.read_float("bert.embeddings.word_embeddings.weight");
}

TEST_F(DivergedRuns, ADivergedRunKeepsTheWeightsOfItsLastFiniteLoss) {
  write_tiny_model(model_, {.eight_overflows = true});
  const fs::path order = directory_ / "order.jsonl", one = directory_ / "one";
  write_file(order, "[[\"q01\", 0]]\n[[\"q11\", 0]]\n[[\"q31\", 0]]\n");
  const auto words = [&](const fs::path& output, const char* steps) {
    return Words{"train",   "--model", model_, "--train", train_,         "--order", order,          "--output", output,
                 "--steps", steps,     "--lr", "1e-2",    "--max-length", "60",      "--doc-stride", "20"};
  };
  const ProgramRun first = run_mylos(words(one, "1"));
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  const ProgramRun run = run_mylos(words(run_, "3"));
  EXPECT_EQ(run.exit_code, 1);
  const std::string error = run.error_lines().back();
  EXPECT_TRUE(error.starts_with("mylos: error: step 3: loss ")) << run.errors;
  EXPECT_NE(error.find("last/ contains the weights from before step 2"), std::string::npos) << error;
  const std::vector<float> kept = word_embeddings(run_ / "last"), expected = word_embeddings(one / "last"),
                           start = word_embeddings(model_);
  for (std::size_t i = 0; i < kept.size(); ++i) ASSERT_NEAR(kept[i], expected[i], 1e-6 * std::abs(expected[i]) + 1e-6);
  EXPECT_NE(kept, start);
}

// Previously, the run ended with an exception: no last/, no checkpoint, and nothing was reverted.
TEST_F(DivergedRuns, AnEvaluationThatIsNotFiniteIsADivergedRun) {
  const ProgramRun run = spoil();
  EXPECT_EQ(run.exit_code, 1);
  const std::string error = run.error_lines().back();
  EXPECT_TRUE(
      error.starts_with("mylos: error: the evaluation after step 2: the model's outputs are not finite: the run "
                        "stops; last/ contains the weights from before step 2, up to the rounding of its update; "
                        "use a smaller --learning-rate"))
      << run.errors;
  EXPECT_TRUE(fs::exists(run_ / "last" / "model.safetensors"));
}

// The slot does not determine the gradient of the update.
TEST_F(DivergedRuns, UpdatesOfNesterovAndLionAreNotUndone) {
  for (const auto& [words, update] : {std::pair(Words{"--optimizer", "sgd", "--nesterov"}, "with Nesterov momentum"),
                                      {Words{"--optimizer", "lion", "--overwrite"}, "of Lion"}}) {
    const ProgramRun run = spoil(words);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(
        run.error_lines().back(),
        HasSubstr(fmt::format("the model's outputs are not finite: the run stops; last/ is not written, because "
                              "an update {} cannot be undone; use a smaller --learning-rate",
                              update)));
    EXPECT_FALSE(fs::exists(run_ / "last"));
  }
}

// The checkpoint of the step with the spoilt weights was the latest and, with --keep, the only one.
TEST_F(DivergedRuns, NoCheckpointOfSpoiltWeightsStays) {
  const fs::path checkpoints = run_ / "checkpoints";
  const Words every_step = {"--checkpoint-every", "1"};
  const ProgramRun run = spoil(every_step);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error_lines().back(), HasSubstr("; the checkpoint after step 2 is removed; use a smaller"));
  EXPECT_TRUE(fs::exists(checkpoints / "step-000001.h5"));
  EXPECT_FALSE(fs::exists(checkpoints / "step-000002.h5"));
  EXPECT_EQ(read_file(checkpoints / "latest"), "step-000001.h5\n");
  const ProgramRun again = spoil(every_step);
  EXPECT_THAT(again.errors, HasSubstr("goes on after step 1, from "));
  EXPECT_EQ(again.exit_code, 1);
}

}  // namespace
}  // namespace mylos::tests
