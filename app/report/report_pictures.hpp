#pragma once

#include "app/report/report_run.hpp"

#include <string>
#include <vector>

namespace mylos::app {

/// Returns the misclassified images with the largest losses of image classification runs, as embedded pictures; empty
/// if no run kept any. Adds a line to `problems` for each file that cannot be read.
std::string pictures_html(const std::vector<ReportedRun>& runs, std::vector<std::string>& problems);

}  // namespace mylos::app
