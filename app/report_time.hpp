#pragma once

#include "app/report_run.hpp"

#include <nlohmann/json.hpp>

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
  /// From the first step's begin to the last line of metrics.jsonl what is nothing of these: models that are written,
  /// and the time between two starts of the run.
  std::optional<double> between = {};
};

RunTime time_of(const train::RunRecord& run);

/// Bars and a table; `kernels` is what `mylos bench step --breakdown --json` printed, or null. Empty where no step was
/// made and no kernels are given.
std::string time_html(const std::vector<ReportedRun>& runs, const nlohmann::json& kernels);

}  // namespace mylos::app
