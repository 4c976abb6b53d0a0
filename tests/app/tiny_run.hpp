#pragma once

#include "tests/app/tiny_family.hpp"
#include "tests/app/tiny_model.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/waiting.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mylos::tests {

/// Waits until a run has written more than `bytes` of its metrics.
inline void await_metrics(const std::filesystem::path& run, std::uintmax_t bytes = 0) {
  const std::filesystem::path file = run / "metrics.jsonl";
  wait_until([&] { return std::filesystem::exists(file) && std::filesystem::file_size(file) > bytes; });
}

/// Returns the default GEMM provider of the program under test, which may come from another build than the test.
inline std::string default_provider() {
  static const std::string name = nlohmann::json::parse(run_mylos({"info", "--json"}).output)["gemm_providers"].back();
  return name;
}

inline nlohmann::json read_json(const std::filesystem::path& path) { return nlohmann::json::parse(read_file(path)); }

/// Returns the records in a run's metrics.jsonl, or those that have a member `key`.
std::vector<nlohmann::json> metrics_of(const std::filesystem::path& run, const std::string& key = "");
/// Returns the records of a kind: "step" or "evaluation".
std::vector<nlohmann::json> records_of(const std::filesystem::path& run, const std::string& kind);
/// Returns the numbers called `key` in metrics.jsonl.
std::vector<double> values_of(const std::filesystem::path& run, const std::string& key);

/// A tiny model of a family with data in files, and the path for a run.
class TinyRun : public testing::Test {
 protected:
  explicit TinyRun(const Family& family = bert_family()) : family_(family) {}
  void SetUp() override {
    family_.write_model(model_);
    family_.write_data(train_);
  }

  /// Returns `words`, the family's options of train, and `more`.
  std::vector<std::string> with_options(std::vector<std::string> words, const std::vector<std::string>& more) const {
    words.insert(words.end(), family_.options.begin(), family_.options.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::string> with_noise(std::vector<std::string> words) const {
    words.insert(words.end(), family_.noise.begin(), family_.noise.end());
    return words;
  }

  const Family& family_;
  TemporaryDirectory directory_;
  std::filesystem::path model_ = directory_ / "model", train_ = directory_ / ("train" + family_.ending),
                        dev_ = directory_ / ("dev" + family_.ending), run_ = directory_ / "run";
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (directory_ / "cache").string()};  ///< not the user's timing cache
};

/// A tiny run with evaluation, whose windows are shorter than some of its texts.
class EvaluatedRun : public TinyRun {
 protected:
  using TinyRun::TinyRun;
  using Words = std::vector<std::string>;

  void SetUp() override {
    TinyRun::SetUp();
    family_.write_data(dev_);
  }

  /// Fixes the GEMM provider, because runs that select it by timing would not agree bit for bit.
  Words train_words(const std::filesystem::path& output, const Words& more = {}) const {
    Words words = with_options({"train", "--model", model_, "--train", train_, "--dev", dev_, "--output", output,
                                "--batch", "4", "--lr", "1e-3"},
                               more);
    if (std::ranges::find(more, "--gemm") == more.end()) words.insert(words.end(), {"--gemm", default_provider()});
    return words;
  }
  ProgramRun train(const std::filesystem::path& output, const Words& more = {}) const {
    return run_mylos(train_words(output, more));
  }
  ProgramRun train_here(const Words& more) const { return train(run_, more); }
};

}  // namespace mylos::tests
