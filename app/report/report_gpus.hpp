#pragma once

#include "app/report/report_run.hpp"

#include <string>
#include <vector>

/// GPU utilization, memory and power of runs.
namespace mylos::app {

/// Returns the energy of all GPUs over all starts of a run; 0 if unknown.
double energy_kilowatt_hours(const ReportedRun& run);

/// For one run, returns charts of utilization, memory and power over time and a table of its GPUs; for several runs, a
/// table. Empty if no run has GPU samples.
std::string gpus_html(const std::vector<ReportedRun>& runs);

}  // namespace mylos::app
