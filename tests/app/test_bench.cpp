#include "tests/app/tiny_run.hpp"
#include "tests/support/ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

/// mylos bench through the program, on a generated model and data.
namespace mylos::tests {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

class BenchStep : public TinyRun {
 protected:
  ProgramRun bench(const Words& more) const {
    return run_mylos(joined({"bench", "step", "--model", model_, "--data", train_, "--batch", "4", "--repeats", "2",
                             "--max-length", "60", "--doc-stride", "20"},
                            more));
  }
};

TEST_F(BenchStep, ValidatesAndTimes) {
  const ProgramRun run = bench({"--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json result = json::parse(run.output);
  EXPECT_GT(result["tokens_per_second"].get<double>(), 0.0);
  EXPECT_GT(result["share_of_gemm"].get<double>(), 0.0);
  EXPECT_EQ(result["products"].size(), 15u);
  for (const json& product : result["products"]) EXPECT_TRUE(product["gflops"].contains(product["fastest"]));
  EXPECT_FALSE(result.contains("breakdown"));
}

/// Every kernel of a step needs a formula; without one, its row would lack work and bytes.
TEST_F(BenchStep, TheBreakdownKnowsTheWorkOfEveryKernel) {
  for (const Words& options :
       std::vector<Words>{{},
                          {"--precision", "bfloat16", "--recompute", "attention"},
                          {"--gemm", "kokkos-kernels", "--precision", "bfloat16", "--recompute", "layer"},
                          {"--gemm", "kokkos-kernels", "--micro-batch", "3"}}) {
    Words words = joined({"--json", "--breakdown"}, options);
    const ProgramRun run = bench(words);
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    std::set<std::string> names;
    const json rows = json::parse(run.output)["breakdown"]["kernels"];
    for (const json& row : rows) {
      const auto name = row["name"].get<std::string>();
      EXPECT_TRUE(names.insert(name).second) << name;
      ASSERT_TRUE(row["flops"].is_number() && row["bytes"].is_number()) << name;
      EXPECT_GT(row["flops"].get<double>() + row["bytes"].get<double>(), 0.0) << name;
      EXPECT_TRUE(row["share_of_roofline"].is_number()) << name;
      EXPECT_GE(row["calls"].get<double>(), 1.0) << name;
    }
    for (const char* kernel : {"mylos::Attention::backward", "mylos::optimizer::adamw", "fill of mylos::gradients"}) {
      EXPECT_TRUE(names.contains(kernel)) << kernel;
    }
    // The calls of a product may use different providers.
    std::set<std::string> products;
    for (const std::string& name : names) {
      if (const std::size_t end = name.find(" by "); end != std::string::npos) products.insert(name.substr(0, end));
    }
    EXPECT_EQ(products.size(), 15u);
  }
}

/// All time is attributed to the running operations, so the rows add up to the time from a step's first section to its
/// last.
TEST_F(BenchStep, TheBreakdownAddsUpToTheStep) {
  json breakdown = json::parse(bench({"--json", "--breakdown"}).output)["breakdown"];
  // Delays by the system between two events are unaccounted; in such a short step they may be some percent.
  for (int i = 0; i < 3 && breakdown["accounted"].get<double>() < 0.95; ++i) {
    breakdown = json::parse(bench({"--json", "--breakdown"}).output)["breakdown"];
  }
  std::set<std::string> sections;
  for (const json& row : breakdown["host"]) sections.insert(row["name"].get<std::string>());
  EXPECT_THAT(sections, ::testing::ElementsAre("mylos::LaunchBound::mark", "mylos::TrainingStep::assemble",
                                               "mylos::TrainingStep::choose_samples", "mylos::TrainingStep::pass",
                                               "mylos::TrainingStep::reduce", "mylos::TrainingStep::sync_parameters",
                                               "mylos::TrainingStep::update", "mylos::TrainingStep::wait"));
  const auto accounted = breakdown["accounted"].get<double>();
  EXPECT_GT(accounted, breakdown["in_kernels"].get<double>());
  EXPECT_GE(accounted, 0.95);
  EXPECT_LE(accounted, 1.0 + 1e-9);
}

TEST_F(BenchStep, TheBreakdownIsATable) {
  const ProgramRun run = bench({"--breakdown"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  for (const char* line : {"roofline: ", "kernel  ", "qkv/forward by ", "not in kernels\n", "sum: "}) {
    EXPECT_NE(run.output.find(line), std::string::npos) << line << run.output;
  }
}

using Bench = TinyRun;

TEST_F(Bench, TokenizeValidatesAndTimes) {
  const Words base = {"bench", "tokenize", "--data", train_, "--repeats", "2", "--json"};
  for (const Words& more : {Words{"--model", model_}, Words{"--vocab", model_ / "vocab.txt"}}) {
    const ProgramRun run = run_mylos(joined(base, more));
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    const json result = json::parse(run.output);
    EXPECT_EQ(result["texts"], 16);
    EXPECT_GT(result["tokens"].get<int>(), 16);
    EXPECT_GT(result["texts_per_second"].get<double>(), 0.0);
    EXPECT_GT(result["megabytes_per_second"].get<double>(), 0.0);
    EXPECT_GT(result["tokens_per_second"].get<double>(), 0.0);
    EXPECT_EQ(result["context"]["threads"], 1);
  }
}

TEST_F(Bench, GemmTimesEveryProductOfALayer) {
  for (const char* precision : {"float", "bfloat16"}) {
    const ProgramRun run = run_mylos({"bench", "gemm", "--model", model_, "--max-length", "60", "--doc-stride", "20",
                                      "--tokens", "48", "--repeats", "1", "--precision", precision, "--json"});
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    const json result = json::parse(run.output);
    EXPECT_EQ(result["products"].size() % 15, 0u);
    EXPECT_EQ(result["products"][0]["precision"], precision);
  }
}

TEST(BenchCollectives, ChecksAndTimesEveryOperationBySize) {
  if (!has_mpi()) GTEST_SKIP() << "This build has no MPI";
  const ProgramRun run = run_ranks(2, {"bench", "collectives", "--repeats", "2", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json result = json::parse(run.output);
  EXPECT_EQ(result["ranks"], 2);
  EXPECT_EQ(result["nodes"], 1);
  EXPECT_GT(result["memory_bandwidth"].get<double>(), 0.0);
  std::set<std::pair<std::string, std::size_t>> rows;
  for (const json& row : result["collectives"]) {
    rows.emplace(row["operation"].get<std::string>(), row["bytes"].get<std::size_t>());
    EXPECT_GT(row["seconds"].get<double>(), 0.0);
    EXPECT_GT(row["share_of_memory"].get<double>(), 0.0);
    const double factor = row["operation"] == "all-reduce" ? 1.0 : 0.5;
    EXPECT_DOUBLE_EQ(row["bus_bandwidth"].get<double>(), factor * row["algorithm_bandwidth"].get<double>());
  }
  EXPECT_EQ(rows.size(), 24u);
  EXPECT_TRUE(rows.contains({"reduce-scatter", std::size_t{64} << 20}));
}

TEST(BenchCollectives, OneRankIsToldWhatItTakes) {
  const ProgramRun run = run_mylos({"bench", "collectives"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, ::testing::HasSubstr("needs several ranks; start it as mpirun -n 2 mylos bench collectives"));
}

}  // namespace
}  // namespace mylos::tests
