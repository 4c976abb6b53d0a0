#pragma once

#include "app/report/report_run.hpp"

#include <string>
#include <vector>

namespace mylos::app {

/// The images that runs of image classification take for another label with the largest losses, as pictures in the
/// page; empty where no run kept any. What cannot be read is told in `problems`.
std::string pictures_html(const std::vector<ReportedRun>& runs, std::vector<std::string>& problems);

}  // namespace mylos::app
