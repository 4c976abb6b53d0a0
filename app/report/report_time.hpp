#pragma once

#include "app/bench/step_breakdown.hpp"
#include "app/report/report_run.hpp"

#include <optional>
#include <string>
#include <vector>

/// Where the time of a run goes.
namespace mylos::app {

/// Seconds of the first rank. Parts that a build or an older run does not tell are within `passes`.
struct RunTime {
  double passes = 0.0;                  ///< forward, backward, and what else steps do
  std::optional<double> data = {};      ///< making batches
  std::optional<double> exchange = {};  ///< waiting for other ranks
  std::optional<double> update = {};    ///< the optimizer
  double evaluations = 0.0;
  std::optional<double> checkpoints = {};
  /// What is nothing of these from the first one's begin to the last one's end, a minute or less at a time: models that
  /// are written, short pauses between two starts of the run.
  std::optional<double> between = {};
  double pauses = 0.0;  ///< the same, of more than a minute
};

RunTime time_of(const train::RunRecord& run);

/// Bars and a table; `kernels` are those of one step by `mylos bench step --breakdown --json`. Empty where no step was
/// made and no kernels are given.
std::string time_html(const std::vector<ReportedRun>& runs, const std::vector<BreakdownRow>& kernels);

}  // namespace mylos::app
