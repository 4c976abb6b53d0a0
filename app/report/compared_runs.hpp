#pragma once

#include "train/monitor/run_record.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Runs beside one another: the figures that `mylos compare` and `mylos report` show of each.
namespace mylos::app {

/// One run, as its files tell.
struct ComparedRun {
  double total_seconds = 0.0;      ///< of the process, start to end
  double training_seconds = 0.0;   ///< of its steps
  double tokens_per_second = 0.0;  ///< of the median step
  double mean_tokens_per_second = 0.0;
  double memory = 0.0;              ///< bytes, the most that the first rank had resident
  double sent = 0.0;                ///< bytes that the first rank sends in a step
  double loss = 0.0;                ///< of the last step
  std::optional<double> exact, f1;  ///< of the last evaluation
};

/// The repeats of one mode on one number of ranks, or why there are none.
struct ComparedSetting {
  std::string mode;
  std::size_t ranks = 0;
  std::vector<ComparedRun> runs;
  std::string failure;
};

/// What the lines of a run's metrics say; it has steps. What they do not have is not a number.
ComparedRun compared_run(const train::RunRecord& run);

/// A line a setting, medians over its repeats; speedup and efficiency are those of tokens a second, and count from the
/// first setting on the fewest ranks.
std::string comparison_table(const std::vector<ComparedSetting>& settings);
nlohmann::ordered_json comparison_json(const std::vector<ComparedSetting>& settings);

}  // namespace mylos::app
