#pragma once

#include "app/report/report_run.hpp"

#include <string>
#include <vector>

/// What runs were: model, data, machine, options.
namespace mylos::app {

/// A table of what matters, and every option to open.
std::string description_html(const ReportedRun& run);

/// What run.json says differently in some of the runs, a column a run; a sentence where they say the same. Names of
/// output directories and states are left out.
std::string differences_html(const std::vector<ReportedRun>& runs);

}  // namespace mylos::app
