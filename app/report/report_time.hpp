#pragma once

#include "app/bench/step_breakdown.hpp"
#include "app/report/report_run.hpp"

#include <optional>
#include <string>
#include <vector>

/// The time of a run by activity.
namespace mylos::app {

/// Seconds on the first rank. `passes` includes the parts that a build or an older run does not record.
struct RunTime {
  double passes = 0.0;                  ///< forward and backward passes, and the unrecorded rest of steps
  std::optional<double> data = {};      ///< making batches
  std::optional<double> exchange = {};  ///< waiting for other ranks
  std::optional<double> update = {};    ///< the optimizer
  double evaluations = 0.0;
  std::optional<double> checkpoints = {};
  /// Unrecorded time between the first and the last record, in gaps of at most a minute: writing models, short breaks
  /// between two starts of the run.
  std::optional<double> between = {};
  double pauses = 0.0;  ///< the same, in gaps longer than a minute
};

RunTime time_of(const train::RunRecord& run);

/// Returns bars and a table. `kernels` are those of one step, from `mylos bench step --breakdown --json`. Empty if no
/// step was made and `kernels` is empty.
std::string time_html(const std::vector<ReportedRun>& runs, const std::vector<BreakdownRow>& kernels);

}  // namespace mylos::app
