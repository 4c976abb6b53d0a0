#pragma once

#include "app/report/compared_runs.hpp"
#include "tasks/task_kinds.hpp"
#include "train/monitor/gpu_record.hpp"
#include "train/monitor/run_record.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <span>
#include <string>
#include <vector>

/// The data of a run for a report: its files, and remarks on missing ones.
namespace mylos::app {

struct ReportedRun {
  std::string name;  ///< unique among the runs of the report
  train::RunRecord record;
  nlohmann::json results = {};              ///< results.json; null if there is none
  std::optional<ComparedRun> figures = {};  ///< nullopt if no step was made; the loss is the mean of the last steps
  std::vector<train::GpuSeries> gpus = {};  ///< samples of the run's GPUs, if it used any
  std::vector<std::string> missing = {};    ///< sentences about missing or incomplete files
};

/// Reads the runs in `directories`. Errors: std::runtime_error naming a directory that holds no run.
std::vector<ReportedRun> read_reported_runs(std::span<const std::string> directories);

/// Returns the value at a JSON pointer into run.json, such as "/resolved/mode"; null if it is absent.
nlohmann::json setting_of(const train::RunRecord& record, const char* pointer);
/// Returns the value as text; empty if it is absent or null.
std::string setting_text(const ReportedRun& run, const char* pointer);
/// Returns the value if it is a whole number, else nullopt.
std::optional<std::size_t> setting_count(const train::RunRecord& record, const char* pointer);

/// Returns the task that run.json names. Returns the default if it names none, as in versions with only one task, and
/// null if this program does not have the task.
const tasks::TaskKind* task_kind_of(const ReportedRun& run);

/// Returns the value as it would be typed, with commas between list items; "not set" for null.
std::string value_text(const nlohmann::json& value);

/// Returns "274 of 1,695 steps, ended by SIGTERM".
std::string progress_text(const train::RunRecord& record);

}  // namespace mylos::app
