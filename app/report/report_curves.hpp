#pragma once

#include "app/report/report_run.hpp"

#include <string>
#include <vector>

/// The curves of a report.
namespace mylos::app {

/// Loss, learning rate, gradient norm, each metric of the evaluations, speed, memory: of one run, or of several over
/// one another. What no run has is left out; empty where there is nothing.
std::string curves_html(const std::vector<ReportedRun>& runs);

/// Charts beside one another.
std::string charts_html(const std::vector<std::string>& charts);

}  // namespace mylos::app
