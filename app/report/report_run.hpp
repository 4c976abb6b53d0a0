#pragma once

#include "app/report/compared_runs.hpp"
#include "tasks/task_kinds.hpp"
#include "train/monitor/gpu_record.hpp"
#include "train/monitor/run_record.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <span>
#include <string>
#include <vector>

/// A run as a report sees it: its files, and what is not in them.
namespace mylos::app {

struct ReportedRun {
  std::string name;  ///< no other run of the report has it
  train::RunRecord record;
  nlohmann::json results = {};              ///< results.json; null where there is none
  std::optional<ComparedRun> figures = {};  ///< nothing where no step was made; the loss is the mean of the last steps
  std::vector<train::GpuSeries> gpus = {};  ///< what they did, where the run computed on some
  std::vector<std::string> missing = {};    ///< sentences on what is not there, or not whole
};

/// Reads the runs in `directories`. Errors: std::runtime_error naming the one in which there is nothing of a run.
std::vector<ReportedRun> read_reported_runs(std::span<const std::string> directories);

/// A value of run.json, of options or under "resolved" or "program": as text, empty where it is absent or null.
std::string setting_text(const ReportedRun& run, const char* key);
std::string setting_text(const ReportedRun& run, const char* group, const char* key);

/// The kind of task that run.json names: the default where it names none, as versions that knew no other; null where
/// this program has none of that name.
const tasks::TaskKind* task_kind_of(const ReportedRun& run);

/// The value as it would be typed, lists of names with commas; "not set" for null.
std::string value_text(const nlohmann::json& value);

/// "274 of 1,695 steps, ended by SIGTERM".
std::string progress_text(const train::RunRecord& record);

}  // namespace mylos::app
