#pragma once

#include "app/batch/batch_rows.hpp"
#include "app/bench/step_breakdown.hpp"
#include "app/report/report_answers.hpp"
#include "app/report/report_run.hpp"

#include <optional>
#include <string>
#include <vector>

/// `mylos report`: runs as one page of HTML that needs nothing else.
namespace mylos::app {

/// What the page is told beside the runs.
struct ReportSettings {
  std::vector<BreakdownRow> kernels = {};  ///< of one step, measured by `mylos bench step --breakdown --json`
  StepPair between = {};                   ///< evaluations whose answers are compared
  std::optional<BatchTable> batches = {};  ///< what `mylos bench batch --json` printed
};

/// The page; `runs` may be empty where there are batches.
std::string report_html(const std::vector<ReportedRun>& runs, const ReportSettings& settings);

/// What every report has in its first kilobyte, and no other file should.
inline constexpr const char* report_mark = "<meta name=\"generator\" content=\"mylos report\"/>";

}  // namespace mylos::app
