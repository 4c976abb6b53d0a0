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
  double total_seconds = 0.0;                 ///< of the process, start to end
  double training_seconds = 0.0;              ///< of its steps
  std::string work = "tokens";                ///< what its steps count
  double rate = 0.0;                          ///< work a second of the median step
  double mean_rate = 0.0;                     ///< all work over the training time
  double memory = 0.0;                        ///< bytes, the most that the first rank had resident
  double sent = 0.0;                          ///< bytes that the first rank sends in a step
  double loss = 0.0;                          ///< of the last step
  std::vector<train::MetricKind> kinds = {};  ///< of its evaluations
  train::Metrics metrics = {};                ///< of each kind the last evaluation's that has it
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

/// The metrics that have a column, in the order in which the runs list them. The first metric of a run, its validation
/// loss, has none where there are others.
std::vector<train::MetricKind> compared_metrics(const std::vector<ComparedSetting>& settings);
/// The shorter of title and name, with a unit other than percent: "exact", "F1", "Latency ms".
std::string column_heading(const train::MetricKind& kind);
/// A value of a metric for people: percents with two decimals, others with five digits; "-" where it is not finite.
std::string metric_value_text(const train::MetricKind& kind, double value);
/// Returns what the steps of all runs count. Empty if they differ.
std::optional<std::string> common_work(const std::vector<ComparedSetting>& settings);

/// A line a setting, medians over its repeats; speedup and efficiency are those of the work a second, and count from
/// the first setting on the fewest ranks. Runs that count other work than that one have neither.
std::string comparison_table(const std::vector<ComparedSetting>& settings);
nlohmann::ordered_json comparison_json(const std::vector<ComparedSetting>& settings);

}  // namespace mylos::app
