#include "tests/app/tiny_run.hpp"
#include "tests/support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

/// Llama on texts through the program: training, evaluation, resumption, prepared samples and plans.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

/// A small Llama without weights or tokenizer, and documents that bring their ids.
class LanguageRuns : public testing::Test {
 protected:
  void SetUp() override {
    write_file(model_ / "config.json", R"({"model_type": "llama", "vocab_size": 29, "hidden_size": 16,
      "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
      "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "bos_token_id": 1, "eos_token_id": 2})");
    write_file(train_, documents(40));
    write_file(dev_, documents(9));
  }

  /// Each counts upwards from where it begins, and is of another length.
  static std::string documents(std::size_t count) {
    std::string lines;
    for (std::size_t i = 0; i < count; ++i) {
      json ids = json::array();
      for (std::size_t j = 0; j < 4 + i % 7; ++j) ids.push_back(3 + (5 * i + j) % 26);
      lines += json{{"input_ids", ids}}.dump() + "\n";
    }
    return lines;
  }

  ProgramRun train(const fs::path& output, const Words& more) const {
    Words words = {"train",   "--model", model_, "--train", train_,   "--dev",           dev_, "--output", output,
                   "--batch", "4",       "--lr", "1e-2",    "--gemm", default_provider()};
    words.insert(words.end(), more.begin(), more.end());
    return run_mylos(words);
  }
  static std::vector<json> rows(const fs::path& run, const std::string& kind) {
    std::vector<json> rows;
    std::istringstream lines(read_file(run / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      json row = json::parse(line);
      if (row["kind"] == kind) rows.push_back(std::move(row));
    }
    return rows;
  }

  TemporaryDirectory directory_;
  fs::path model_ = directory_ / "model", train_ = directory_ / "train.jsonl", dev_ = directory_ / "dev.jsonl";
  fs::path run_ = directory_ / "run";
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (directory_ / "cache").string()};
};

TEST_F(LanguageRuns, TrainFromTheInitialiserWritesWhatTheInterfaceSays) {
  const ProgramRun run = train(run_, {"--epochs", "4", "--schedule", "constant", "--best-by", "perplexity"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, AllOf(HasSubstr("has no weights: the model begins from Normal(0, 0.02) drawn by --seed"),
                                HasSubstr("40 documents, 40 samples"), HasSubstr("2 key/value heads")));
  EXPECT_EQ(read_json(run_ / "run.json")["task"], "language-modeling");
  EXPECT_EQ(read_json(run_ / "run.json")["resolved"]["metrics"][1]["larger_is_better"], false);
  const std::vector<json> evaluations = rows(run_, "evaluation");
  ASSERT_EQ(evaluations.size(), 4u);
  EXPECT_LT(evaluations.back()["perplexity"], 0.8 * evaluations.front()["perplexity"].get<double>());
  const json results = read_json(run_ / "results.json");
  EXPECT_EQ(json::parse(run.output), results);
  EXPECT_NEAR(results["perplexity"].get<double>(), std::exp(results["loss"].get<double>()), 1e-9);
  const json best = read_json(run_ / "best/config.json");
  EXPECT_EQ(best["model_type"], "llama");
  EXPECT_EQ(best["num_key_value_heads"], 2);
}

TEST_F(LanguageRuns, EvalScoresTheBestModelAsTrainingDid) {
  ASSERT_EQ(train(run_, {"--steps", "6"}).exit_code, 0);
  const ProgramRun scored = run_mylos({"eval", "--model", run_, "--data", dev_, "--output", directory_ / "scored"});
  ASSERT_EQ(scored.exit_code, 0) << scored.errors;
  const json found = json::parse(scored.output), expected = read_json(run_ / "results.json");
  EXPECT_NEAR(found["loss"].get<double>(), expected["loss"].get<double>(), 1e-6);
  EXPECT_EQ(found["tokens"], expected["tokens"]);
  EXPECT_THAT(run_mylos({"eval", "--model", model_, "--data", dev_, "--output", directory_ / "none"}).errors,
              HasSubstr("has no weights (model.safetensors"));
}

TEST_F(LanguageRuns, AResumedRunIsTheSame) {
  const fs::path whole = directory_ / "whole";
  const Words more = {"--steps", "8", "--checkpoint-every", "4", "--eval-every", "4"};
  ASSERT_EQ(train(whole, more).exit_code, 0);
  Words resumed = more;
  resumed.insert(resumed.end(), {"--resume", whole / "checkpoints/step-000004.h5"});
  const ProgramRun run = train(run_, resumed);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(read_file(run_ / "last/model.safetensors"), read_file(whole / "last/model.safetensors"));
  const ProgramRun exported = run_mylos({"checkpoint", "export", whole, "--output", directory_ / "exported"});
  ASSERT_EQ(exported.exit_code, 0) << exported.errors;
  EXPECT_EQ(read_file(directory_ / "exported/model.safetensors"), read_file(whole / "last/model.safetensors"));
}

TEST_F(LanguageRuns, MicroBatchesAndRecomputationGiveTheSameLosses) {
  const auto losses = [&](const std::string& name, const Words& more) {
    Words words = {"--steps", "5"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun run = train(directory_ / name, words);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    std::vector<double> all;
    for (const json& row : rows(directory_ / name, "step")) all.push_back(row["loss"].get<double>());
    return all;
  };
  const std::vector<double> whole = losses("whole", {});
  ASSERT_EQ(whole.size(), 5u);
  EXPECT_EQ(losses("layer", {"--recompute", "layer"}), whole);
  EXPECT_EQ(losses("attention", {"--recompute", "attention"}), whole);
  const std::vector<double> single = losses("single", {"--micro-batch", "1"});
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(single[i], whole[i], 1e-5 * whole[i]) << i;
}

TEST_F(LanguageRuns, PreparedSamplesTrainAlike) {
  const ProgramRun prepared =
      run_mylos({"prepare", "--model", model_, "--data", train_, "--output", directory_ / "samples.h5"});
  ASSERT_EQ(prepared.exit_code, 0) << prepared.errors;
  EXPECT_THAT(prepared.errors, HasSubstr("40 documents, 40 samples"));
  ASSERT_EQ(train(directory_ / "whole", {"--steps", "3"}).exit_code, 0);
  train_ = directory_ / "samples.h5";
  const ProgramRun run = train(run_, {"--steps", "3"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(rows(run_, "step").back()["loss"], rows(directory_ / "whole", "step").back()["loss"]);
  EXPECT_THAT(train(directory_ / "other", {"--steps", "3", "--max-length", "8"}).errors, HasSubstr("max-length"));
}

TEST_F(LanguageRuns, DocumentsAreSplitOrTruncated) {
  const ProgramRun split = train(directory_ / "split", {"--steps", "1", "--max-length", "6"});
  ASSERT_EQ(split.exit_code, 0) << split.errors;
  EXPECT_THAT(split.errors, Not(HasSubstr("40 documents, 40 samples")));
  const ProgramRun cut = train(run_, {"--steps", "1", "--max-length", "6", "--long", "truncate"});
  EXPECT_THAT(cut.errors, AllOf(HasSubstr("40 documents, 40 samples"), HasSubstr("tokens left out")));
}

TEST_F(LanguageRuns, BadInputIsNamed) {
  const auto error = [&](const std::string& lines, const Words& more = {}) {
    write_file(train_, lines);
    const ProgramRun run = train(run_, more);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_FALSE(fs::exists(run_ / "last"));
    return run.errors;
  };
  EXPECT_THAT(error("{\"input_ids\": [3, 4]}\n{\"input_ids\": [3, 29]}\n"),
              AllOf(HasSubstr("train.jsonl, line 2"), HasSubstr("29")));
  EXPECT_THAT(error("{\"input_ids\": [3, 4]}\n{\"input_ids\": 3}\n"), HasSubstr("train.jsonl, line 2"));
  EXPECT_THAT(error("{\"text\": \"e2e4\"}\n"), HasSubstr("tokenizer"));
  EXPECT_THAT(error(""), HasSubstr("train.jsonl"));
  EXPECT_THAT(error(documents(4), {"--max-length", "64"}), HasSubstr("--max-length 64: expected at most 32"));
  EXPECT_THAT(error(documents(4), {"--doc-stride", "8"}),
              HasSubstr("--doc-stride belongs to --task question-answering"));
}

TEST_F(LanguageRuns, PlansKnowModelsBySize) {
  const ProgramRun plan = run_mylos({"plan", "--model", "codellama-7b", "--gpu", "a100-80", "--gpus", "4", "--batch",
                                     "64", "--max-length", "512", "--precision", "bfloat16", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.errors;
  const json planned = json::parse(plan.output);
  for (const json& mode : planned["modes"]) {
    if (mode["mode"] == "replicated") EXPECT_EQ(mode["fits"], false);
    if (mode["mode"] == "sharded") EXPECT_EQ(mode["fits"], true);
  }
  EXPECT_THAT(planned["recommended"].get<std::string>(), HasSubstr("--model codellama-7b"));
}

/// The default length is made to fit, and the recommended line says it.
TEST_F(LanguageRuns, ThePlannedLineFitsTheModel) {
  const ProgramRun plan = run_mylos({"plan", "--model", model_, "--gpu", "h100", "--data", train_});
  ASSERT_EQ(plan.exit_code, 0) << plan.errors;
  EXPECT_THAT(plan.output, HasSubstr("--max-length 32"));
}

}  // namespace
}  // namespace mylos::tests
