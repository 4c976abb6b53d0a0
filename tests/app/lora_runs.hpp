#pragma once

#include "tests/app/rank_runs.hpp"
#include "tests/data/tokenizer/letters_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

/// Runs of adapters (LoRA) through the program.
namespace mylos::tests {

/// A small Llama with weights and a tokenizer of the letters a and b, documents, and the options of its adapters.
class LoraRuns : public TinyRun, protected RankLauncher {
 protected:
  using Words = std::vector<std::string>;

  LoraRuns() : TinyRun(llama_family()) {}
  void SetUp() override {
    TinyRun::SetUp();
    write_file(model_ / "tokenizer.model", letters_model());
    write_file(dev_, tiny_documents(5));
    const ProgramRun run = run_mylos({"train", "--model", model_, "--train", train_, "--output", directory_ / "first",
                                      "--steps", "2", "--batch", "4", "--lr", "1e-2", "--gemm", default_provider()});
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    std::filesystem::rename(directory_ / "first" / "best", base_);
  }

  Words train_words(const std::filesystem::path& output, const Words& more = {}) const {
    return joined({"train", "--model", base_, "--train", train_, "--dev", dev_, "--output", output, "--batch", "4",
                   "--lr", "1e-2", "--schedule", "constant", "--gemm", default_provider()},
                  more);
  }
  ProgramRun train(const Words& more) const { return run_mylos(train_words(run_, more)); }
  /// Trains run_ with adapters for 4 steps, with checkpoints.
  void train_adapters(const Words& more = {}) const {
    const ProgramRun run = train(joined({"--lora-rank", "2", "--steps", "4", "--checkpoint-every", "2"}, more));
    ASSERT_EQ(run.exit_code, 0) << run.errors;
  }
  /// Returns what eval prints with `model` and `more` options.
  nlohmann::json scores(const std::filesystem::path& model, const Words& more = {}) const {
    const ProgramRun run = run_mylos(
        joined({"eval", "--model", model, "--data", dev_, "--output", directory_ / "scores", "--overwrite"}, more));
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    return nlohmann::json::parse(run.output);
  }

  /// Expects one line with the error, without more lines that look like one.
  static void expect_refused(const ProgramRun& run, const std::string& what, int exit_code = 1) {
    EXPECT_EQ(run.exit_code, exit_code) << what << "\n" << run.errors;
    std::vector<std::string> lines = run.error_lines();
    std::erase_if(lines, [](const std::string& line) { return !line.starts_with("mylos: error: "); });
    ASSERT_EQ(lines.size(), 1u) << what << "\n" << run.errors;
    EXPECT_THAT(lines[0], testing::HasSubstr(what));
  }

  std::filesystem::path base_ = directory_ / "base", merged_ = directory_ / "merged";
};

}  // namespace mylos::tests
