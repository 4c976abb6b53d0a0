#pragma once

#include "tests/app/tiny_model.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

namespace mylos::tests {

/// Waits until a run has written more than `bytes` of its metrics, a minute at most.
inline void await_metrics(const std::filesystem::path& run, std::uintmax_t bytes = 0) {
  const std::filesystem::path file = run / "metrics.jsonl";
  for (int waits = 0; waits < 3000; ++waits) {
    if (std::filesystem::exists(file) && std::filesystem::file_size(file) > bytes) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

/// The provider of products that the program under test takes unasked: it may be of another build than the test.
inline std::string default_provider() {
  static const std::string name = nlohmann::json::parse(run_mylos({"info", "--json"}).output)["gemm_providers"].back();
  return name;
}

/// A tiny model and questions for it in files, and the name of a directory for a run.
class TinyRun : public testing::Test {
 protected:
  void SetUp() override {
    write_tiny_model(model_);
    write_file(train_, tiny_questions());
  }

  TemporaryDirectory directory_;
  std::filesystem::path model_ = directory_ / "model", train_ = directory_ / "train.json", run_ = directory_ / "run";
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (directory_ / "cache").string()};  ///< of timings, not the user's
};

}  // namespace mylos::tests
