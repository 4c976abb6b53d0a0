#pragma once

#include "app/batch/batch_rows.hpp"
#include "app/bench/step_breakdown.hpp"
#include "app/report/report_run.hpp"
#include "tasks/interface/run_report.hpp"

#include <optional>
#include <string>
#include <vector>

/// `mylos report`: one self-contained HTML page about runs.
namespace mylos::app {

/// Inputs of the page other than the runs.
struct ReportSettings {
  std::vector<BreakdownRow> kernels = {};  ///< kernels of one step, from `mylos bench step --breakdown --json`
  tasks::StepPair between = {};            ///< evaluations whose answers are compared
  std::optional<BatchTable> batches = {};  ///< output of `mylos bench batch --json`
};

/// Returns the page. `runs` may be empty if there are batches.
std::string report_html(const std::vector<ReportedRun>& runs, const ReportSettings& settings);

/// Identifies a report: it is in the first kilobyte of every report, and should be in no other file.
inline constexpr const char* report_mark = "<meta name=\"generator\" content=\"mylos report\"/>";

}  // namespace mylos::app
