#pragma once

#include "app/report/report_run.hpp"

#include <string>
#include <vector>

/// Descriptions of runs: model, data, machine, options.
namespace mylos::app {

/// Returns a table of the main settings, and a list of all options that can be opened.
std::string description_html(const ReportedRun& run);

/// Returns a table of the values of run.json that differ between runs, one column per run, or a sentence if all are
/// equal. Ignores output directories and run states.
std::string differences_html(const std::vector<ReportedRun>& runs);

}  // namespace mylos::app
