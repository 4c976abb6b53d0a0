#pragma once

#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace mylos::tests {

/// Runs of the program on a tiny model, with helpers to interrupt and to compare them.
class ResumedRuns : public TinyRun {
 protected:
  using TinyRun::TinyRun;
  void SetUp() override { TinyRun::SetUp(); }

  std::vector<std::string> words(const std::filesystem::path& output, const std::vector<std::string>& more = {}) const {
    return with_options(
        with_noise({"train", "--model", model_, "--train", train_, "--dev", train_, "--output", output, "--batch", "4",
                    "--lr", "1e-3", "--steps", "9", "--eval-every", "3", "--gemm", default_provider()}),
        more);
  }
  ProgramRun train(const std::filesystem::path& output, const std::vector<std::string>& more = {}) const {
    return run_mylos(words(output, more));
  }

  /// Returns `more` and the options of a run that keeps its checkpoints after each second step.
  static std::vector<std::string> saving(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--checkpoint-every", "2", "--keep", "20"});
    return more;
  }

  /// Creates a run that ended after `steps` of its 9 steps, as if killed: later checkpoints are removed.
  void leave_unfinished(const std::filesystem::path& output, std::size_t steps) const {
    ASSERT_EQ(train(output, saving()).exit_code, 0);
    interrupt(output, steps);
  }

  /// Turns a finished run with all its checkpoints into one that ended after `steps`.
  static void interrupt(const std::filesystem::path& output, std::size_t steps) {
    nlohmann::json run = nlohmann::json::parse(read_file(output / "run.json"));
    run["state"]["finished"] = false;
    write_file(output / "run.json", run.dump());
    for (const auto& entry : parallel::list_checkpoints(output / "checkpoints")) {
      if (entry.step > steps) std::filesystem::remove(entry.file);
    }
    write_file(output / "checkpoints" / "latest", parallel::checkpoint_file_name(steps).string() + "\n");
  }

  /// Returns metrics.jsonl without the fields that differ between runs.
  static std::vector<nlohmann::json> metrics(const std::filesystem::path& output) {
    std::vector<nlohmann::json> rows = metrics_of(output);
    // A resumed run has written different checkpoints.
    std::erase_if(rows, [](const nlohmann::json& row) { return row.contains("checkpoint"); });
    for (nlohmann::json& row : rows) {
      for (const char* key : {"seconds", "tokens_per_second", "images_per_second", "memory", "data_seconds",
                              "exchange_seconds", "update_seconds", "time"}) {
        row.erase(key);
      }
    }
    return rows;
  }

  /// Returns the answers that a run saved, by file name.
  static std::map<std::string, std::string> answers(const std::filesystem::path& output) {
    std::map<std::string, std::string> kept;
    if (!std::filesystem::exists(output / "evaluations")) return kept;
    for (const auto& entry : std::filesystem::directory_iterator(output / "evaluations")) {
      kept[entry.path().filename()] = read_file(entry.path());
    }
    return kept;
  }

  /// Expects that the command printed by an interrupted run resumes after its last step.
  static void expect_named_command_goes_on(const ProgramRun& run, std::size_t step) {
    const std::string start = "to continue from the checkpoint: mylos ";
    const auto lines = run.error_lines();
    const auto line = std::ranges::find_if(lines, [&](const std::string& each) { return each.starts_with(start); });
    ASSERT_NE(line, lines.end()) << run.errors;
    std::istringstream words(line->substr(start.size()) + " --dry-run");
    const ProgramRun again = run_mylos({std::istream_iterator<std::string>(words), {}});
    EXPECT_EQ(again.exit_code, 0) << again.errors;
    EXPECT_THAT(again.errors, ::testing::HasSubstr("would go on after step " + std::to_string(step) + ", from "));
  }

  void expect_refused(const ProgramRun& run, const std::string& what) const {
    EXPECT_EQ(run.exit_code, 1) << run.errors;
    EXPECT_TRUE(run.error_lines().back().starts_with("mylos: error: ")) << run.errors;
    EXPECT_THAT(run.error_lines().back(), ::testing::HasSubstr(what));
  }
};

}  // namespace mylos::tests
