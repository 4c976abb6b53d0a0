#pragma once

#include "app/options/arguments.hpp"
#include "app/report/text_table.hpp"
#include "train/monitor/run_record.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

/// Figures of runs that `mylos compare` and `mylos report` show next to each other.
namespace mylos::app {

inline constexpr double unknown_figure = std::numeric_limits<double>::quiet_NaN();

/// The figures of one run, read from its files.
struct ComparedRun {
  std::string name = {};                      ///< of its directory; empty if that is not told
  std::size_t nodes = 0, ranks = 0;           ///< 0: unknown
  double total_seconds = 0.0;                 ///< whole process, from start to end; NaN if it was not measured
  double training_seconds = 0.0;              ///< sum over its steps
  double epoch_seconds = unknown_figure;      ///< median step times the steps of an epoch, also of a shorter run
  std::string work = "tokens";                ///< unit of work of its steps
  double rate = 0.0;                          ///< median work per second over the steps
  double mean_rate = 0.0;                     ///< all work divided by the training time
  double memory = 0.0;                        ///< bytes, peak resident memory of the first rank
  double sent = 0.0;                          ///< bytes that the first rank sends per step
  double loss = 0.0;                          ///< in the last step
  std::vector<train::MetricKind> kinds = {};  ///< kinds of its evaluation metrics
  train::Metrics metrics = {};                ///< for each kind, the value of the last evaluation that has it

  /// Returns a metric; NaN if the run does not have it.
  double metric(const std::string& name) const;
};

/// The repeats of one mode on one number of ranks, or the reason why there are none.
struct ComparedSetting {
  std::string strategy;
  std::size_t ranks = 0;
  std::vector<ComparedRun> runs;
  std::string failure;
  std::size_t nodes = 0;  ///< that were asked for; 0: wherever the launcher put the ranks
  bool is_whole = false;  ///< of the whole model, beside runs of its adapters

  std::string mode_name() const { return is_whole ? strategy + ", whole" : strategy; }

  /// Returns the ranks as in --ranks.
  std::string ranks_name() const { return ComparedRanks{ranks, nodes}.name(); }
};

/// A line of a comparison: medians over the repeats of a setting that have the figure; its name is that of the run in
/// the middle by the total time, else the training time. Speedup and efficiency compare the work per second with that
/// of the first setting on the fewest ranks; runs with another unit of work have neither. Where another program's time
/// on one GPU is given, they compare the total time with that. What is unknown is NaN.
struct ComparisonLine : ComparedRun {
  std::string strategy;
  std::size_t repeats = 0;  ///< runs that succeeded; if 0, the figures are unknown
  std::size_t kept = 0;     ///< of these, runs whose whole process was not measured
  std::string failure;      ///< why there are none
  double speedup = unknown_figure;
  double efficiency = unknown_figure;  ///< speedup divided by the ratio of ranks
};

/// Computes the figures of a run, which must have steps. Figures that are not in its metrics are NaN.
ComparedRun compared_run(const train::RunRecord& run);

/// Returns the line of a failed run's `errors` that gives the reason: the error that mylos printed; else the first line
/// of the launcher's own message, which Open MPI prints between lines of dashes; else the last line.
std::string failure_reason(const std::string& errors);

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

/// Returns one line per setting.
std::vector<ComparisonLine> comparison_lines(const std::vector<ComparedSetting>& settings,
                                             std::optional<double> baseline_seconds = {});
/// Returns the lines as JSON, and as a table.
nlohmann::ordered_json comparison_json(const std::vector<ComparedSetting>& settings,
                                       std::optional<double> baseline_seconds = {});
std::string comparison_table(const std::vector<ComparedSetting>& settings, TableFormat format = TableFormat::text,
                             std::optional<double> baseline_seconds = {});

}  // namespace mylos::app
