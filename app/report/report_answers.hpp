#pragma once

#include "app/report/report_run.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The sections of a report that know questions and answers.
namespace mylos::app {

/// Two evaluations, by the steps after which they were.
using StepPair = std::optional<std::pair<std::size_t, std::size_t>>;

struct AnswersSection {
  std::string changes;  ///< markup; empty where no answers were kept
  std::string errors;
  std::vector<std::string> problems;  ///< files that could not be read
};

/// Answers that changed between two evaluations of one run (`between` names their steps; empty = the first after a step
/// and the last), or between several runs' final answers and the first run's; and each run's worst errors. Empty where
/// a run is of another task than question answering. Errors: UsageError where no evaluation was kept after a step of
/// `between`.
AnswersSection answers_html(const std::vector<ReportedRun>& runs, const StepPair& between);

}  // namespace mylos::app
