#pragma once

#include "app/report/report_run.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Sections of a report about questions and answers.
namespace mylos::app {

/// Two evaluations, given by their steps.
using StepPair = std::optional<std::pair<std::size_t, std::size_t>>;

struct AnswersSection {
  std::string changes;  ///< markup; empty if no answers were kept
  std::string errors;
  std::vector<std::string> problems;  ///< one line per file that could not be read
};

/// Returns the answers that changed between two evaluations of one run, or between the final answers of the first run
/// and those of the others, and the worst errors of each run. `between` names the steps of the two evaluations; by
/// default, the first after a step and the last. Empty if a run has another task than question answering. Errors:
/// UsageError if no evaluation was kept after a step of `between`.
AnswersSection answers_html(const std::vector<ReportedRun>& runs, const StepPair& between);

}  // namespace mylos::app
