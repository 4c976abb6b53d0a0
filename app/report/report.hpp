#pragma once

#include "app/bench/step_breakdown.hpp"
#include "app/report/report_answers.hpp"
#include "app/report/report_run.hpp"

#include <string>
#include <vector>

/// `mylos report`: runs as one page of HTML that needs nothing else.
namespace mylos::app {

/// What the page is told beside the runs.
struct ReportSettings {
  std::vector<BreakdownRow> kernels = {};  ///< of one step, measured by `mylos bench step --breakdown --json`
  StepPair between = {};                   ///< evaluations whose answers are compared
};

/// The page.
std::string report_html(const std::vector<ReportedRun>& runs, const ReportSettings& settings);

/// What every report has in its first kilobyte, and no other file should.
inline constexpr const char* report_mark = "<meta name=\"generator\" content=\"mylos report\"/>";

}  // namespace mylos::app
