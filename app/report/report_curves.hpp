#pragma once

#include "app/report/report_run.hpp"

#include <string>
#include <vector>

/// The charts of a report.
namespace mylos::app {

/// Returns charts of loss, learning rate, gradient norm, each evaluation metric, speed and memory, for one run or for
/// several runs in the same charts. Omits charts without data; empty if there are none.
std::string curves_html(const std::vector<ReportedRun>& runs);

/// Returns the charts laid out side by side.
std::string charts_html(const std::vector<std::string>& charts);

}  // namespace mylos::app
