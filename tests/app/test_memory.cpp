#include "tests/app/tiny_model.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

/// What `train --dry-run` says a run will take, and what the run then has resident.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

constexpr double mebibyte = 1 << 20;
constexpr std::size_t positions = 384;

/// The number before " GiB at most" or " MiB at most", in MiB.
double predicted(const std::string& banner) {
  const std::size_t end = banner.find("iB at most"), begin = banner.rfind("memory ", end) + 7;
  if (end == std::string::npos) return 0.0;
  return std::stod(banner.substr(begin)) * (banner[end - 1] == 'G' ? 1024.0 : 1.0);
}

/// The most that metrics.jsonl says was resident, in MiB.
double measured(const fs::path& run) {
  double most = 0.0;
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);
    if (row.contains("memory")) most = std::max(most, row["memory"].get<double>() / mebibyte);
  }
  return most;
}

struct Setting {
  std::string provider, precision, recompute;
};

class PredictedMemory : public testing::TestWithParam<Setting> {};

TEST_P(PredictedMemory, IsWithinFivePercentOfTheMeasured) {
  if (heap_is_sanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  const auto& [provider, precision, recompute] = GetParam();
  if (run_mylos({"info"}).output.find(provider) == std::string::npos) GTEST_SKIP() << "no " << provider << " here";
  const TemporaryDirectory directory;
  const fs::path model = directory / "model", train = directory / "train.json", run = directory / "run";
  write_tiny_model(model, {.positions = positions, .hidden = 384, .layers = 4, .feed_forward = 1536});
  write_file(train, long_questions(32, positions));
  Words words = {"train",   "--model", model,     "--train",     train,          "--output",    run,
                 "--batch", "16",      "--steps", "2",           "--max-length", "384",         "--dropout",
                 "0.1",     "--gemm",  provider,  "--precision", precision,      "--recompute", recompute};
  Words dry = words;
  dry.push_back("--dry-run");
  const ProgramRun said = run_mylos(dry);
  ASSERT_EQ(said.exit_code, 0) << said.errors;
  ASSERT_EQ(run_mylos(words).exit_code, 0);
  EXPECT_GT(measured(run), 150.0);
  EXPECT_NEAR(predicted(said.errors) / measured(run), 1.0, 0.05) << said.errors << measured(run) << " MiB measured";
}

INSTANTIATE_TEST_SUITE_P(Of, PredictedMemory,
                         testing::Values(Setting{"onednn", "float", "none"}, Setting{"onednn", "float", "layer"},
                                         Setting{"onednn", "bfloat16", "none"},
                                         Setting{"onednn-packed", "float", "none"},
                                         Setting{"kokkos-kernels", "float", "attention"},
                                         Setting{"kokkos-kernels", "bfloat16", "none"},
                                         Setting{"onednn", "half", "none"}),
                         [](const auto& of) {
                           std::string provider = of.param.provider;
                           std::ranges::replace(provider, '-', '_');
                           return provider + "_" + of.param.precision + "_" + of.param.recompute;
                         });

}  // namespace
}  // namespace mylos::tests
