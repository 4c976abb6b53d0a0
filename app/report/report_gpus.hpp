#pragma once

#include "app/report/report_run.hpp"

#include <string>
#include <vector>

/// What the GPUs of runs did.
namespace mylos::app {

/// Of all GPUs and starts of a run; 0 where nothing says.
double energy_kilowatt_hours(const ReportedRun& run);

/// Of one run utilisation, memory and power over time and a table of its GPUs; of several a table. Empty where no run
/// has samples of GPUs.
std::string gpus_html(const std::vector<ReportedRun>& runs);

}  // namespace mylos::app
