#pragma once

#include "train/monitor/run_record.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Figures of runs that `mylos compare` and `mylos report` show next to each other.
namespace mylos::app {

/// The figures of one run, read from its files.
struct ComparedRun {
  double total_seconds = 0.0;                 ///< whole process, from start to end
  double training_seconds = 0.0;              ///< sum over its steps
  std::string work = "tokens";                ///< unit of work of its steps
  double rate = 0.0;                          ///< median work per second over the steps
  double mean_rate = 0.0;                     ///< all work divided by the training time
  double memory = 0.0;                        ///< bytes, peak resident memory of the first rank
  double sent = 0.0;                          ///< bytes that the first rank sends per step
  double loss = 0.0;                          ///< in the last step
  std::vector<train::MetricKind> kinds = {};  ///< kinds of its evaluation metrics
  train::Metrics metrics = {};                ///< for each kind, the value of the last evaluation that has it
};

/// The repeats of one mode on one number of ranks, or the reason why there are none.
struct ComparedSetting {
  std::string mode;
  std::size_t ranks = 0;
  std::vector<ComparedRun> runs;
  std::string failure;
};

/// Computes the figures of a run, which must have steps. Figures that are not in its metrics are NaN.
ComparedRun compared_run(const train::RunRecord& run);

/// Returns the metrics that have a column, in the order in which the runs list them. The first metric of a run, its
/// validation loss, has no column if the run has others.
std::vector<train::MetricKind> compared_metrics(const std::vector<ComparedSetting>& settings);
/// Returns the title or the name, whichever is shorter, with its unit unless that is percent: "exact", "F1", "Latency
/// ms".
std::string column_heading(const train::MetricKind& kind);
/// Returns the value as text: percentages with two decimals, others with five digits; "-" if it is not finite.
std::string metric_value_text(const train::MetricKind& kind, double value);
/// Returns the unit of work of the steps of all runs; nullopt if they differ.
std::optional<std::string> common_work(const std::vector<ComparedSetting>& settings);

/// Returns a table with one line per setting: medians over its repeats. Speedup and efficiency compare the work per
/// second with that of the first setting on the fewest ranks. Runs with another unit of work have neither.
std::string comparison_table(const std::vector<ComparedSetting>& settings);
nlohmann::ordered_json comparison_json(const std::vector<ComparedSetting>& settings);

}  // namespace mylos::app
