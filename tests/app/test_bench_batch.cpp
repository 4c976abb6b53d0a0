#include "core/device.hpp"
#include "tests/app/rank_runs.hpp"
#include "tests/support/sanitized.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

/// mylos bench batch through the program: measured on one and two ranks, predicted, limited and rejected.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

constexpr double mebibyte = 1 << 20, gibibyte = 1 << 30;

/// Writes a small Llama without weights, and 32 documents of 510 ids.
void write_documents_model(const fs::path& model, const fs::path& data) {
  write_file(model / "config.json", R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 64,
      "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
      "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "bos_token_id": 1, "eos_token_id": 2})");
  std::string lines;
  for (std::size_t i = 0; i < 32; ++i) {
    json ids = json::array();
    for (std::size_t j = 0; j < 510; ++j) ids.push_back(3 + (5 * i + j * j) % 61);
    lines += json{{"input_ids", ids}}.dump() + "\n";
  }
  write_file(data, lines);
}

class BenchBatch : public RankRuns {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    write_documents_model(llama_, documents_);
  }
  Words words(const Words& more) const {
    return joined({"bench", "batch", "--model", llama_, "--data", documents_, "--batch", "8", "--gemm",
                   default_provider(), "--repeats", "1"},
                  more);
  }
  static json parsed(const ProgramRun& run, int exit_code = 0) {
    EXPECT_EQ(run.exit_code, exit_code) << run.errors;
    return run.exit_code == exit_code ? json::parse(run.output) : json();
  }
  json measured(const Words& more) const {
    Words all = words(more);
    all.emplace_back("--json");
    return parsed(run_mylos(all));
  }
  static json row(const json& table, const std::string& strategy, const std::string& recompute,
                  std::size_t micro_batch) {
    for (const json& one : table["rows"]) {
      if (one["mode"] == strategy && one["recompute"] == recompute && one["micro_batch"] == micro_batch) return one;
    }
    ADD_FAILURE() << "no row " << strategy << " " << recompute << " " << micro_batch;
    return {};
  }

  static void expect_every_micro_batch(const json& table);
  static void expect_own_memory(const json& table);
  void expect_limit(const json& all) const;
  void expect_same_plan(const json& all) const;
  void expect_picture(const json& table) const;

  fs::path llama_ = directory_ / "llama", documents_ = directory_ / "documents.jsonl";
};

/// Every micro-batch is planned, measured, and compared by its losses.
void BenchBatch::expect_every_micro_batch(const json& table) {
  EXPECT_EQ(table["rows"].size(), 8u) << "1, 2, 4 and 8, with and without recomputation";
  EXPECT_EQ(table["work"], "tokens");
  EXPECT_EQ(table["samples"], "sequences");
  EXPECT_EQ(table["losses_agree"], true);
  EXPECT_LE(table["loss_difference"].get<double>(), 1e-5);
  EXPECT_TRUE(table["memory_is_peak"].is_boolean());
  std::size_t fastest = 0;
  for (const json& one : table["rows"]) {
    EXPECT_EQ(one["fits"], true);
    EXPECT_EQ(one["failure"], nullptr);
    EXPECT_EQ(one["micro_batches"].get<std::size_t>() * one["micro_batch"].get<std::size_t>(), 8u);
    // All documents have 512 tokens, including BOS and EOS.
    EXPECT_NEAR(one["tokens_per_second"].get<double>() * one["step_seconds"].get<double>(), 8.0 * 512, 1e-6);
    EXPECT_GT(one["first_loss"].get<double>(), one["last_loss"].get<double>());
    fastest += one["fastest"] == true ? 1 : 0;
  }
  EXPECT_EQ(fastest, 1u);
  for (const char* recompute : {"none", "layer"}) {
    double before = 0.0;
    for (const std::size_t samples : {1, 2, 4, 8}) {
      const auto planned = row(table, "replicated", recompute, samples)["planned_memory"].get<double>();
      EXPECT_GT(planned, before);
      before = planned;
    }
  }
  ASSERT_EQ(table["largest_micro_batches"].size(), 2u);
  EXPECT_GT(table["largest_micro_batches"][1]["micro_batch"], table["largest_micro_batches"][0]["micro_batch"]);
}

/// Memory is measured per row: rows that need less follow rows that need more, and must report less.
void BenchBatch::expect_own_memory(const json& table) {
  for (const json& one : table["rows"]) {
    const auto planned = one["planned_memory"].get<double>(), used = one["memory"].get<double>();
    EXPECT_LE(used, planned + 0.5 * mebibyte) << one;
    // The plan includes the memory of checkpoints and reports, and room for the products' code.
    EXPECT_GE(1.08 * used + 14 * mebibyte, planned) << one;
  }
  const auto none = row(table, "replicated", "none", 8)["memory"].get<double>();
  const auto layer = row(table, "replicated", "layer", 1)["memory"].get<double>();
  EXPECT_LT(layer, none - 10 * mebibyte);
}

/// Micro-batches that do not fit in memory are not run.
void BenchBatch::expect_limit(const json& all) const {
  const auto bound = 0.5 * (row(all, "replicated", "none", 2)["planned_memory"].get<double>() +
                            row(all, "replicated", "none", 4)["planned_memory"].get<double>());
  const json table = measured({"--memory", std::to_string(bound / gibibyte)});
  const json refused = row(table, "replicated", "none", 4);
  EXPECT_EQ(refused["fits"], false);
  EXPECT_GT(refused["planned_memory"].get<double>(), bound - 4 * mebibyte) << "the figure that was asked for";
  for (const char* figure : {"memory", "step_seconds", "tokens_per_second", "first_loss"}) {
    EXPECT_EQ(refused[figure], nullptr) << figure;
  }
  EXPECT_EQ(row(table, "replicated", "none", 2)["fits"], true);
  for (const json& one : table["rows"]) EXPECT_FALSE(one["recompute"] == "none" && one["micro_batch"] == 8);
  EXPECT_NEAR(table["available"].get<double>(), bound, mebibyte);
  const auto largest = table["largest_micro_batches"][0]["micro_batch"].get<std::size_t>();
  EXPECT_GE(largest, 2u);
  EXPECT_LT(largest, 4u);

  const ProgramRun none = run_mylos(words({"--memory", "0.001"}));
  EXPECT_EQ(none.exit_code, 1) << "nothing fits";
  EXPECT_THAT(none.output, HasSubstr("more than the free memory"));
}

void BenchBatch::expect_same_plan(const json& all) const {
  const json plan = parsed(run_mylos({"bench", "batch", "--plan", "--model", llama_, "--data", documents_, "--gpu",
                                      "cpu", "--threads", "1", "--batch", "8", "--json"}));
  ASSERT_EQ(plan["rows"].size(), all["rows"].size());
  for (std::size_t i = 0; i < plan["rows"].size(); ++i) {
    EXPECT_NEAR(plan["rows"][i]["planned_memory"].get<double>(), all["rows"][i]["planned_memory"].get<double>(),
                0.1 * plan["rows"][i]["planned_memory"].get<double>() + 6 * mebibyte);
  }
}

void BenchBatch::expect_picture(const json& table) const {
  const fs::path batches = directory_ / "batch.json", page = directory_ / "report.html";
  write_file(batches, table.dump());
  const ProgramRun run = run_mylos({"report", "--batches", batches, "--output", page});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(read_file(page), testing::AllOf(HasSubstr("Speed, measured"), HasSubstr("Memory of a rank")));
  write_file(batches, "{}");
  const ProgramRun broken = run_mylos({"report", "--batches", batches, "--output", page});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.errors, HasSubstr("batch.json, expected from mylos bench batch --json"));
  EXPECT_THAT(run_mylos({"report"}).errors, HasSubstr("report needs a run's directory, or --batches FILE"));
}

TEST_F(BenchBatch, TheMeasuredTableHasItsMemoryPlanAndPicture) {
  const json table = measured({});
  expect_every_micro_batch(table);
  expect_picture(table);
  if (heap_is_sanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  expect_same_plan(table);
  expect_limit(table);
  if (table["memory_is_peak"] == false) GTEST_SKIP() << "this system does not let a process reset its peak";
  expect_own_memory(table);
}

TEST_F(BenchBatch, TheRecommendedLineIsTheFastestRun) {
  const json table = measured({"--precision", "bfloat16", "--batch", "2"});
  std::string line = table["recommended"];
  ASSERT_THAT(line, StartsWith("mylos train --train " + documents_.string() + " --output run --model "));
  for (const json& one : table["rows"]) {
    if (one["fastest"] == false) continue;
    EXPECT_THAT(line, HasSubstr(" --micro-batch " + one["micro_batch"].dump() + " "));
    EXPECT_THAT(line, HasSubstr(" --recompute " + one["recompute"].get<std::string>() + " "));
  }
  line =
      "cd '" + directory_.path().string() + "' && exec '" + program().string() + "' " + line.substr(6) + " --steps 1";
  const ProgramRun run = RunningProgram({"-c", line}, "", {}, "/bin/sh").wait();
  EXPECT_EQ(run.exit_code, 0) << line << run.errors;
  EXPECT_EQ(read_json(directory_ / "run/run.json")["precision"], "bfloat16");
}

TEST_F(BenchBatch, OneRecomputationAndAnotherTask) {
  const ProgramRun run =
      run_mylos({"bench", "batch", "--model", model_, "--data", train_, "--batch", "3", "--repeats", "1",
                 "--max-length", "60", "--doc-stride", "20", "--recompute", "attention", "--gemm", default_provider()});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  for (const char* words : {"attention            1           3   yes", "attention            3           1   yes",
                            "fastest", "tokens/s", "agree in the first and in the last step: ", " --doc-stride 20 "}) {
    EXPECT_THAT(run.output, HasSubstr(words));
  }
}

/// Sends a signal within a row's steps, and one just after a row has ended.
TEST_F(BenchBatch, ASignalEndsItWithOneLineAndNothingLeftOver) {
  struct Moment {
    const char *repeats, *after, *wait;
  };
  for (const Moment& moment : {Moment{"100000", "is initialised", "1"}, Moment{"1", "ms per step", "0"}}) {
    const fs::path directory = directory_ / "place", errors = directory_ / "errors";
    fs::create_directory(directory);
    // A separate process group, because a shell makes its background processes ignore Ctrl-C.
    const std::string script =
        fmt::format(R"(set -m; cd '{}'
"$0" "$@" 2>'{}' & run=$!
until grep -q '{}' '{}' || ! kill -0 $run; do sleep 0.02; done
sleep {}; kill -INT $run; wait $run)",
                    directory.string(), errors.string(), moment.after, errors.string(), moment.wait);
    Words all = {"-c", script, program()};
    for (const std::string& word : words({})) all.push_back(word);
    all.insert(all.end(), {"--repeats", moment.repeats});
    const ProgramRun run = RunningProgram(all, "", {}, "/bin/bash").wait();
    EXPECT_EQ(run.exit_code, 130);
    EXPECT_EQ(run.output, "");
    std::string rest = read_file(errors);
    for (const char* known : {"tokenizer.model", "is initialised", "ms per step"}) {
      for (std::size_t at; (at = rest.find(known)) != std::string::npos;) {
        const std::size_t begin = rest.rfind('\n', at) + 1;
        rest.erase(begin, rest.find('\n', at) + 1 - begin);
      }
    }
    EXPECT_THAT(rest, testing::MatchesRegex("[^\n]*ended by a signal [^\n]*\n")) << moment.after;
    EXPECT_TRUE(fs::is_empty(directory));
    fs::remove_all(directory);
  }
}

/// The first rank reads the documents.
TEST_F(BenchBatch, TwoRanksRunTheirModesTogether) {
  if (mpiexec().empty()) GTEST_SKIP() << "a build without MPI";
  const Words first = words({"--modes", "replicated,fsdp", "--recompute", "layer", "--batch", "4", "--json"});
  Words second = first;
  std::ranges::replace(second, documents_.string(), (directory_ / "gone.jsonl").string());
  const json table = parsed(run_on({first, second}));
  EXPECT_EQ(table["ranks"], 2);
  EXPECT_EQ(table["rows"].size(), 4u) << "1 and 2 of a rank's two, in two modes";
  for (const json& one : table["rows"]) EXPECT_GT(one["step_seconds"].get<double>(), 0.0);
  EXPECT_EQ(table["losses_agree"], true);
  EXPECT_THAT(table["recommended"].get<std::string>(), StartsWith("mpirun -n 2 mylos train "));
  EXPECT_LT(row(table, "sharded", "layer", 1)["planned_memory"].get<double>(),
            row(table, "replicated", "layer", 1)["planned_memory"].get<double>() + 2 * mebibyte);
}

/// The plan cannot foresee this failure, and the other rank could wait for this one's data.
TEST_F(BenchBatch, ARowThatFailsOnOneRankFailsOnBothAndTheTableGoesOn) {
  if (mpiexec().empty()) GTEST_SKIP() << "a build without MPI";
  if (heap_is_sanitized || !runs_on_host) GTEST_SKIP() << "arrays are not those of the C++ library";
  const Words row = words({"--modes", "replicated,fsdp", "--recompute", "layer", "--json"});
  // About 10 MiB: as much as the products of a row need.
  Words all = joined({"-n", "1", program()}, row);
  for (const std::string& word : {std::string(":"), std::string("-n"), std::string("1"), std::string("/usr/bin/env"),
                                  std::string("LD_PRELOAD=") + MYLOS_SCARCE_MEMORY,
                                  std::string("MYLOS_LARGEST_ARRAY=3000000"), program().string()}) {
    all.push_back(word);
  }
  all.insert(all.end(), row.begin(), row.end());
  const ProgramRun run = RunningProgram(all, "", {}, mpiexec()).wait();
  const json table = parsed(run, 1);
  ASSERT_EQ(table["rows"].size(), 2u) << "no larger one is tested instead in either mode";
  for (const json& one : table["rows"]) {
    EXPECT_EQ(one["fits"], true);
    EXPECT_THAT(one["failure"].get<std::string>(), StartsWith("rank 1: "));
  }
}

/// Like a query on a login node: no model files, and nothing runs.
TEST_F(BenchBatch, ThePlanPredictsTheSameTable) {
  const json table =
      parsed(run_mylos({"bench", "batch", "--plan", "--model", "codellama-7b", "--gpu", "a100-80", "--gpus", "4",
                        "--batch", "64", "--max-length", "512", "--precision", "bfloat16", "--json"}));
  EXPECT_EQ(row(table, "replicated", "none", 1)["fits"], false);
  EXPECT_GT(row(table, "replicated", "none", 1)["planned_memory"].get<double>(), table["available"].get<double>());
  // 1 GiB is kept free, plus 688 MiB for NCCL's connections.
  EXPECT_EQ(table["available"].get<double>(), 78.328125 * gibibyte);
  for (const std::size_t samples : {1, 2, 4, 8, 16}) {
    const json one = row(table, "sharded", "none", samples);
    EXPECT_EQ(one["fits"], true);
    EXPECT_EQ(one["memory"], nullptr);
    EXPECT_EQ(one["first_loss"], nullptr);
    EXPECT_GT(row(table, "sharded", "layer", samples)["step_seconds"], one["step_seconds"]);
  }
  EXPECT_EQ(row(table, "sharded", "none", 16)["fastest"], true);
  EXPECT_THAT(table["rate"].get<std::string>(), StartsWith("assumed"));
  EXPECT_THAT(table["recommended"].get<std::string>(),
              testing::AllOf(StartsWith("srun "), HasSubstr(" --micro-batch 16 "), HasSubstr(" --mode sharded")));
}

TEST_F(BenchBatch, NoFsdpTriesReplicatedOnly) {
  const auto strategies = [](const Words& more) {
    Words words = joined({"bench", "batch", "--plan", "--model", "tinyllama-1.1b", "--gpu", "a100-80", "--gpus", "4",
                          "--batch", "8", "--max-length", "512", "--precision", "bfloat16", "--json"},
                         more);
    std::set<std::string> found;
    const json table = parsed(run_mylos(words));
    for (const json& one : table["rows"]) found.insert(one["mode"].get<std::string>());
    return found;
  };
  EXPECT_THAT(strategies({}), testing::ElementsAre("replicated", "sharded"));
  EXPECT_THAT(strategies({"--no_fsdp"}), testing::ElementsAre("replicated"));
}

TEST_F(BenchBatch, WrongOptionsAreNamed) {
  const auto complaint = [](Words words) {
    words.insert(words.begin(), {"bench", "batch"});
    const ProgramRun run = run_mylos(words);
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_EQ(run.error_lines().size(), 1u) << run.errors;
    return run.errors;
  };
  EXPECT_THAT(complaint({}), HasSubstr("bench batch needs --model"));
  EXPECT_THAT(complaint({"--model", llama_}), HasSubstr("bench batch needs --data to run steps; give it, or predict"));
  EXPECT_THAT(complaint({"--model", llama_, "--plan"}), HasSubstr("bench batch --plan needs --gpu"));
  EXPECT_THAT(complaint({"--model", llama_, "--data", documents_, "--gpus", "4"}),
              HasSubstr("--gpus is of bench batch --plan; give --plan too, or leave it out"));
  EXPECT_THAT(complaint({"--model", llama_, "--data", documents_, "--micro-batch", "4"}),
              HasSubstr("bench batch has no --micro-batch; leave it out"));
  EXPECT_THAT(complaint({"--model", llama_, "--data", documents_, "--modes", "replicated,scattered"}),
              HasSubstr("--modes replicated,scattered: expected"));
  const ProgramRun other = run_mylos({"bench", "step", "--model", llama_, "--data", documents_, "--modes", "sharded"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("bench step has no --modes; leave it out"));
  EXPECT_THAT(run_mylos({"bench", "step", "--model", llama_, "--data", documents_, "--no_fsdp"}).errors,
              HasSubstr("bench step has no --no-fsdp; leave it out"));
  const ProgramRun missing = run_mylos({"bench", "batch", "--model", llama_, "--data", directory_ / "none.jsonl"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.errors, HasSubstr("none.jsonl"));
  EXPECT_EQ(missing.output, "");
}

}  // namespace
}  // namespace mylos::tests
