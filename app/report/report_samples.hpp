#pragma once

#include "app/report/report_run.hpp"
#include "tasks/interface/run_report.hpp"

#include <string>
#include <vector>

/// Sections of a report about the samples of runs, from the runs' tasks.
namespace mylos::app {

/// Returns what the tasks of the runs report. `between` names two evaluations to compare. Errors: UsageError if no task
/// compares them, and those of TaskKind::report.
tasks::RunReport report_of_tasks(const std::vector<ReportedRun>& runs, const tasks::StepPair& between);

/// Returns the markup of a section; empty if it has no lists.
std::string section_html(const tasks::ReportSection& section);

}  // namespace mylos::app
