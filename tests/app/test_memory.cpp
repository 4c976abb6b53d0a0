#include "tests/app/tiny_family.hpp"
#include "tests/app/tiny_model.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/support/gemm_provider.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

/// Compares the memory predicted by `train --dry-run` with the resident memory of the run.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

constexpr double mebibyte = 1 << 20;
constexpr std::size_t positions = 384;

/// Parses the number before " GiB at most" or " MiB at most", in MiB.
double predicted(const std::string& banner) {
  const std::size_t end = banner.find("iB at most"), begin = banner.rfind("memory ", end) + 7;
  if (end == std::string::npos) return 0.0;
  return std::stod(banner.substr(begin)) * (banner[end - 1] == 'G' ? 1024.0 : 1.0);
}

/// Returns the peak resident memory in metrics.jsonl, in MiB.
double measured(const fs::path& run) {
  const std::vector<double> memory = values_of(run, "memory");
  return memory.empty() ? 0.0 : std::ranges::max(memory) / mebibyte;
}

/// Expects that `figure`, in MiB, is at least the run's resident memory, and at most 8 % above it; 6 MiB if it is less
/// than 75 MiB, because a small run may not use the memory that is reserved for generated code (docs/plan.md).
void expect_at_most(double figure, const ProgramRun& run) {
  const double most = static_cast<double>(run.peak_memory) / mebibyte;
  constexpr double printed = 0.01;  // the last digit of the figure
  EXPECT_GE(figure + printed, most) << run.errors;
  EXPECT_LE(figure, std::max(1.08 * most, most < 75.0 ? most + 6.0 : 0.0)) << run.errors;
}

struct Setting {
  std::string provider, precision, recompute;
  const Family& family = bert_family();
};

/// Writes a model of the family that is large enough to distinguish its memory from the program's, and data with
/// samples of its maximum length. Returns the train options for the samples.
Words write_large_run(const Family& family, const fs::path& model, const fs::path& train) {
  if (&family == &bert_family()) {
    write_tiny_model(model, {.positions = positions, .hidden = 384, .layers = 4, .feed_forward = 1536});
    write_file(train, long_questions(16, positions));
  } else {
    write_tiny_llama(
        model,
        {.vocabulary = 2000, .positions = positions, .hidden = 384, .layers = 4, .feed_forward = 1024, .heads = 6});
    write_file(train, tiny_documents(16, positions - 2));  // BOS and EOS
  }
  Words words = {"--max-length", std::to_string(positions)};
  words.insert(words.end(), family.noise.begin(), family.noise.end());
  return words;
}

class PredictedMemory : public testing::TestWithParam<Setting> {};

TEST_P(PredictedMemory, IsNeverExceededAndAtMostEightPercentMore) {
  if (heap_is_sanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  const auto& [provider, precision, recompute, family] = GetParam();
  if (!has_gemm_provider(provider)) GTEST_SKIP() << "no " << provider << " here";
  const TemporaryDirectory directory;
  const fs::path model = directory / "model", train = directory / ("train" + family.ending), run = directory / "run";
  const std::string steps = provider == "kokkos-kernels" ? "1" : "2";  // it is several times as slow
  Words words = write_large_run(family, model, train);
  words.insert(words.begin(), {"train", "--model", model, "--train", train, "--output", run, "--batch", "8", "--steps",
                               steps, "--gemm", provider, "--precision", precision, "--recompute", recompute});
  Words dry = words;
  dry.push_back("--dry-run");
  const ProgramRun said = run_mylos(dry);
  ASSERT_EQ(said.exit_code, 0) << said.errors;
  const ProgramRun trained = run_mylos(words);
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_GT(measured(run), 150.0);
  expect_at_most(predicted(said.errors), trained);
  expect_at_most(predicted(trained.errors), trained);
}

INSTANTIATE_TEST_SUITE_P(
    Of, PredictedMemory,
    testing::Values(Setting{"onednn", "half", "none"}, Setting{"onednn", "float", "none", llama_family()},
                    Setting{"onednn", "bfloat16", "layer", llama_family()}, Setting{"onednn-packed", "float", "layer"},
                    Setting{"kokkos-kernels", "bfloat16", "attention"}),
    [](const auto& of) {
      std::string provider = of.param.provider;
      std::ranges::replace(provider, '-', '_');
      return of.param.family.name + "_" + provider + "_" + of.param.precision + "_" + of.param.recompute;
    });

/// Runs in which every step has another number of tokens, so that products with new shapes occur all the time.
struct LongRun {
  std::string name, threads, steps;
  TinyModel model;
};

class MemoryOfALongRun : public testing::TestWithParam<LongRun> {};

TEST_P(MemoryOfALongRun, IsNeverExceededAndAtMostEightPercentMore) {
  if (heap_is_sanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  if (!has_gemm_provider("onednn")) GTEST_SKIP() << "no onednn here";
  const LongRun& of = GetParam();
  const TemporaryDirectory directory;
  const fs::path model = directory / "model", run = directory / "run";
  const EnvironmentVariable threads("OMP_NUM_THREADS", of.threads), cache("XDG_CACHE_HOME", directory / "cache");
  write_tiny_model(model, of.model);
  const fs::path train = source_dir() / "examples/squad/train.json", dev = directory / "dev.json";
  write_file(dev, tiny_questions());
  const ProgramRun trained = run_mylos({"train", "--model", model, "--train", train, "--dev", dev, "--output", run,
                                        "--batch", "4", "--steps", of.steps, "--max-length",
                                        std::to_string(of.model.positions), "--doc-stride", "40", "--gemm", "onednn"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  expect_at_most(predicted(trained.errors), trained);
}

TEST(MemoryAfterALargeFile, IsNeverExceededAndAtMostEightPercentMore) {
  if (heap_is_sanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  const TemporaryDirectory directory;
  const fs::path model = directory / "model", train = directory / "train.json";
  write_tiny_model(model);
  json document = json::parse(long_questions(8, 60));
  document["data"][0]["title"] = std::string(std::size_t{100} << 20, 'x');
  write_file(train, document.dump());
  const ProgramRun trained = run_mylos({"train", "--model", model, "--train", train, "--output", directory / "run",
                                        "--batch", "4", "--steps", "2", "--max-length", "60", "--doc-stride", "17"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_GT(static_cast<double>(trained.peak_memory) / mebibyte, 180.0) << "reading takes more than training";
  expect_at_most(predicted(trained.errors), trained);
}

INSTANTIATE_TEST_SUITE_P(
    Of, MemoryOfALongRun,
    testing::Values(
        LongRun{"two_threads", "2", "700", {.positions = 128, .hidden = 32, .layers = 2, .feed_forward = 128}},
        LongRun{"sixteen_threads", "16", "100", {.positions = 128, .hidden = 64, .layers = 2, .feed_forward = 256}},
        LongRun{"demo_sixteen_threads",
                "16",
                "2",
                {.positions = 384, .hidden = 384, .layers = 6, .feed_forward = 1536, .heads = 12}}),
    [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace mylos::tests
