#pragma once

#include "app/batch/batch_rows.hpp"
#include "app/bench/step_breakdown.hpp"
#include "app/report/report_run.hpp"
#include "app/report/svg_chart.hpp"
#include "tasks/interface/run_report.hpp"

#include <optional>
#include <string>
#include <vector>

/// `mylos report`: one self-contained HTML page about runs. Its sections are markup; an empty one is left out.
namespace mylos::app {

// report_page.cpp: the page.

/// Inputs of the page other than the runs.
struct ReportSettings {
  std::vector<BreakdownRow> kernels = {};  ///< kernels of one step, from `mylos bench step --breakdown --json`
  tasks::StepPair between = {};            ///< evaluations whose answers are compared
  std::optional<BatchTable> batches = {};  ///< output of `mylos bench batch --json`
};

/// Returns the page. `runs` may be empty if there are batches.
std::string report_html(const std::vector<ReportedRun>& runs, const ReportSettings& settings);

/// Identifies a report: it is in the first kilobyte of every report, and should be in no other file.
inline constexpr const char* report_mark = "<meta name=\"generator\" content=\"mylos report\"/>";

// report_settings.cpp: model, data, machine and options of runs.

/// Returns a table of the main settings, and a list of all options that can be opened.
std::string description_html(const ReportedRun& run);

/// Returns a table of the values of run.json that differ between runs, one column per run, or a sentence if all are
/// equal. Ignores output directories and run states.
std::string differences_html(const std::vector<ReportedRun>& runs);

// report_curves.cpp: curves over steps.

/// Returns charts of loss, learning rate, gradient norm, each evaluation metric, speed and memory, for one run or for
/// several runs in the same charts. Omits charts without data; empty if there are none.
std::string curves_html(const std::vector<ReportedRun>& runs);

/// Returns the charts laid out side by side.
std::string charts_html(const std::vector<std::string>& charts);

// report_time.cpp: the time of a run by activity.

/// The time of a run on the first rank, in seconds.
struct RunTime {
  std::string name;  ///< of the run
  /// What a run does, in fixed order, so that each part keeps its colour; 0 for a part that was not recorded. Passes
  /// have the unrecorded rest of steps. The last part is the unrecorded time between the first and the last record, in
  /// gaps of at most a minute: writing models, short breaks between two starts of the run.
  std::vector<BarPart> parts;
  bool has_exchange = false, has_update = false;  ///< whether these parts were recorded
  double pauses = 0.0;                            ///< as the last part, in gaps longer than a minute
};
RunTime time_of(const std::string& name, const train::RunRecord& run);

/// Returns bars and a table. `kernels` are those of one step, from `mylos bench step --breakdown --json`. Empty if no
/// step was made and `kernels` is empty.
std::string time_html(const std::vector<ReportedRun>& runs, const std::vector<BreakdownRow>& kernels);

// report_gpus.cpp: what GPUs did.

/// Returns the energy of all GPUs over all starts of a run; 0 if unknown.
double energy_kilowatt_hours(const ReportedRun& run);

/// For one run, returns charts of utilization, memory and power over time and a table of its GPUs; for several runs, a
/// table. Empty if no run has GPU samples.
std::string gpus_html(const std::vector<ReportedRun>& runs);

// report_samples.cpp: the samples of runs, from their tasks.

/// Returns what the tasks of the runs report. `between` names two evaluations to compare. Errors: UsageError if no task
/// compares them, and those of TaskKind::report.
tasks::RunReport report_of_tasks(const std::vector<ReportedRun>& runs, const tasks::StepPair& between);

/// Returns the markup of a section; empty if it has no lists.
std::string section_html(const tasks::ReportSection& section);

// report_batches.cpp: the output of `mylos bench batch --json`.

/// Returns speed and memory over the micro-batch, with one curve per mode and recomputation, and the table. Empty if
/// the table has no rows.
std::string batches_html(const BatchTable& table);

// report_style.cpp: the style sheet.

/// For light and dark mode, narrow and wide screens, and paper. Series use the colours of Okabe and Ito
/// (jfly.uni-koeln.de/color), which people with any colour vision can distinguish, darkened or lightened to suit the
/// background.
extern const char* const report_style;

}  // namespace mylos::app
