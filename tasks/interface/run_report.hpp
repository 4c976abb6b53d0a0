#pragma once

#include "train/monitor/run_record.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The part of a report about the samples of runs. app/report writes it as markup.
namespace mylos::tasks {

struct ReportedFact {
  std::string name, text, remark = {};
  std::optional<double> number = {};  ///< shown with three decimals in place of `text`
};

/// A part of a text, with the words that are marked.
struct ReportedPassage {
  std::string before, marked, after;
  bool is_predicted = false;  ///< the model chose the words
};

struct ReportedPicture {
  std::string png;      ///< PNG file, at most 224 pixels wide and high; empty if it cannot be read
  std::string problem;  ///< reason why it cannot be read
  std::size_t width = 0, height = 0;
  std::string label = {};
};

struct ReportedSample {
  std::string title = {}, id = {};
  std::optional<ReportedPicture> picture = {};
  std::vector<ReportedFact> facts = {};
  std::vector<ReportedPassage> passages = {};
};

/// A paragraph, a note and samples, each of which may be missing. A list with a `fold` is shown under that line, and
/// the first of several in succession is open.
struct ReportedList {
  std::string fold = {}, text = {}, note = {};
  std::vector<ReportedSample> samples = {};
};

struct ReportSection {
  std::string_view id, heading;
  bool has_pictures = false;
  std::vector<ReportedList> lists = {};
};

struct RunReport {
  std::vector<ReportSection> sections = {};
  std::vector<std::string> problems = {};  ///< one line per file that could not be read
  bool compares_steps = false;             ///< took ReportedRuns::between into account
};

/// Two evaluations, given by their steps.
using StepPair = std::optional<std::pair<std::size_t, std::size_t>>;

/// The runs of one kind of tasks in a report.
struct ReportedRuns {
  struct Run {
    std::string name;  ///< unique in the report; empty if this is its only run
    const train::RunRecord& record;
  };
  std::vector<Run> runs = {};
  bool are_all = true;    ///< the report has no runs of other kinds
  StepPair between = {};  ///< evaluations of a single run to compare
};

/// Returns a problem of a run for RunReport::problems.
inline std::string problem_of(const ReportedRuns::Run& run, std::string_view problem) {
  return (run.name.empty() ? "" : run.name + ": ").append(problem);
}

}  // namespace mylos::tasks
