#pragma once

#include "tasks/interface/task_kind.hpp"

namespace mylos::tasks {

/// Returns the kind for question answering on SQuAD and data in its format.
const TaskKind& question_answering();

// Its parts, one file each.

/// Returns its options, which set its SquadConfig.
std::vector<Option<RunConfig>> question_answering_options();

/// The command ask: answers questions about a text, as transformers' question-answering pipeline does. With the rules
/// of SQuAD 2.0 the answer may be empty.
void ask(const CommandCall& call);
/// The command score: prints what the official script prints for the version of the data or that of --squad.
void score(const CommandCall& call);

/// Returns the answers that changed between two evaluations of one run, by default the first after a step and the last,
/// or between the final answers of the first run and those of the others, and the worst errors of each run. Only a
/// problem if the report has runs of other tasks. Errors: UsageError if no evaluation was kept after a step of
/// `between`.
RunReport report_answers(const ReportedRuns& runs);

}  // namespace mylos::tasks
