#include "app/report/report_run.hpp"

#include "app/options/config_file.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/usage_error.hpp"
#include "train/engine/evaluation_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace mylos::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Returns the path without "." and a trailing "/", so that it has a last component.
fs::path tidy(const std::string& text) {
  std::error_code unknown;
  fs::path path = fs::absolute(text, unknown).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

/// Returns the last `parts` components of a path.
std::string tail_of(const fs::path& path, std::size_t parts) {
  fs::path tail = path.filename(), rest = path.parent_path();
  for (; parts > 1 && rest.has_filename(); --parts, rest = rest.parent_path()) tail = rest.filename() / tail;
  return tail.string();
}

/// Returns the shortest tails that distinguish the paths.
std::vector<std::string> names_of(const std::vector<fs::path>& paths) {
  constexpr std::size_t most = 64;
  for (std::size_t parts = 1; parts < most; ++parts) {
    std::vector<std::string> names;
    for (const fs::path& path : paths) names.push_back(tail_of(path, parts));
    std::vector<std::string> sorted = names;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) == sorted.end()) return names;
  }
  throw UsageError("report: a run is named twice");
}

void note_metrics(ReportedRun& run) {
  const train::RunRecord& record = run.record;
  if (record.steps.empty()) {
    run.missing.push_back(record.has_metrics
                              ? "metrics.jsonl contains no steps, so there are no curves."
                              : "metrics.jsonl does not exist: the run has made no step, so there are no curves.");
  }
  if (record.unreadable > 0) {
    run.missing.push_back(
        fmt::format("{} of metrics.jsonl could not be read and {} left out (the last one of a run that was killed may "
                    "be truncated).",
                    count_of(record.unreadable, "line"), record.unreadable == 1 ? "is" : "are"));
  }
  const auto has_no_loss = [](const json& row) { return !std::isfinite(train::number_of(row, "loss")); };
  if (const auto bad = std::ranges::count_if(record.steps, has_no_loss); bad > 0) {
    const auto first = std::ranges::find_if(record.steps, has_no_loss);
    run.missing.push_back(fmt::format("The loss is not a finite number in {}, the first of them step {}.",
                                      count_of(static_cast<std::size_t>(bad), "step"),
                                      (*first)["step"].get<std::size_t>()));
  }
}

void note_scores(ReportedRun& run) {
  const std::string dev = setting_text(run, "/dev");
  const bool has_answers = !train::list_evaluations(run.record.directory).empty();
  if (run.record.evaluations.empty()) {
    if (!run.results.is_null() || has_answers) {
      run.missing.push_back("metrics.jsonl contains no evaluations, so there are no curves of scores.");
    } else if (dev.empty() && run.record.problem.empty()) {
      run.missing.push_back("The run had no --dev: nothing was evaluated.");
    } else {
      run.missing.push_back("No evaluation has finished yet, so there are no scores and no answers.");
    }
  } else if (run.results.is_null()) {
    run.missing.push_back("results.json does not exist, so the scores of best/ are missing.");
  }
}

/// Returns whether the run may finish before its last step because evaluations no longer improve.
bool may_stop_early(const ReportedRun& run) { return !setting_text(run, "/patience").empty(); }

void note_state(ReportedRun& run) {
  const train::RunRecord& record = run.record;
  if (!record.problem.empty()) {
    run.missing.push_back(
        fmt::format("{}. The options of the run and its number of steps are not known.", record.problem));
  } else if (!record.finished) {
    run.missing.push_back(fmt::format("The run is not finished: {}; its files were last written {} ago.",
                                      progress_text(record), duration_text(record.age)));
  }
  const std::size_t rows = record.steps.size();
  const std::size_t made = record.finished && !may_stop_early(run) ? record.planned_steps() : record.done_steps();
  if (rows > 0 && rows < made) {
    run.missing.push_back(fmt::format("metrics.jsonl has {} of {}.", count_text(rows), count_of(made, "step")));
  }
}

void read_results(ReportedRun& run) {
  const fs::path file = run.record.directory / "results.json";
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return;
  run.results = try_parse_json(read_text(file));
  if (run.results.is_object()) return;
  run.results = nullptr;
  run.missing.push_back("results.json is not valid JSON and is left out.");
}

/// Returns whether the run has other files, which are shown even if run.json is missing.
bool has_other_files(const train::RunRecord& record) {
  std::error_code none;
  return record.has_metrics || fs::is_regular_file(record.directory / "results.json", none) ||
         !train::list_evaluations(record.directory).empty();
}

ReportedRun read_reported_run(const fs::path& directory, std::string name) {
  ReportedRun run{.name = std::move(name), .record = train::RunFollower(directory).update()};
  ensure(run.record.problem.empty() || has_other_files(run.record), run.record.problem);
  if (!run.record.steps.empty()) {
    run.figures = compared_run(run.record);
    run.figures->loss = run.record.recent_loss();
  }
  run.gpus = train::read_gpu_samples(directory);
  note_state(run);
  note_metrics(run);
  read_results(run);
  note_scores(run);
  return run;
}

}  // namespace

std::string value_text(const json& value) {
  if (value.is_null()) return "not set";
  const bool is_list =
      value.is_array() && std::ranges::all_of(value, [](const json& each) { return each.is_string(); });
  if (is_list) return fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), ", "));
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', true);
}

std::string progress_text(const train::RunRecord& record) {
  const std::size_t planned = record.planned_steps();
  return fmt::format("{} of {}{}{}", count_text(record.done_steps()),
                     planned == 0 ? "an unknown number of steps" : count_of(planned, "step"),
                     record.ended.empty() ? "" : ", ", record.ended);
}

json setting_of(const train::RunRecord& record, const char* pointer) {
  const json::json_pointer place(pointer);
  return record.run.contains(place) ? record.run.at(place) : json();
}

std::string setting_text(const ReportedRun& run, const char* pointer) {
  const json value = setting_of(run.record, pointer);
  return value.is_null() ? std::string() : value_text(value);
}

std::optional<std::size_t> setting_count(const train::RunRecord& record, const char* pointer) {
  const json value = setting_of(record, pointer);
  return value.is_number_unsigned() ? std::optional(value.get<std::size_t>()) : std::nullopt;
}

const tasks::TaskKind* task_kind_of(const ReportedRun& run) {
  const std::string name = setting_text(run, "/task");
  return name.empty() ? &tasks::default_task_kind() : tasks::find_task_kind(name);
}

std::vector<ReportedRun> read_reported_runs(std::span<const std::string> directories) {
  std::vector<fs::path> paths;
  for (const std::string& directory : directories) paths.push_back(tidy(directory));
  const std::vector<std::string> names = names_of(paths);
  std::vector<ReportedRun> runs;
  for (std::size_t i = 0; i < paths.size(); ++i) runs.push_back(read_reported_run(directories[i], names[i]));
  return runs;
}

}  // namespace mylos::app
