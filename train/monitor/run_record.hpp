#pragma once

#include "train/engine/metrics.hpp"
#include "train/engine/work_kind.hpp"
#include "train/monitor/metrics_reader.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// A run as its files tell it, while it goes on or afterwards; read by anybody, locked by nobody.
namespace mylos::train {

/// Key of what is resolved in run.json: the metrics of the run's task.
inline constexpr const char* metrics_key = "metrics";
/// [{"name": ..., "title": ..., "unit": ..., "larger_is_better": ...}, ...]
nlohmann::ordered_json to_json(std::span<const MetricKind> kinds);

/// Key of what is resolved in run.json: what its steps count, as WorkKind::name.
inline constexpr const char* work_key = "counts";

/// The metrics of a run's task as its run.json lists them. One that does not say what steps count is of a version that
/// knew no task but question answering: its metrics, where none are listed.
std::vector<MetricKind> metric_kinds_of(const nlohmann::json& run);
/// What a run's steps count, by its run.json; "tokens" where that does not say.
std::string work_of(const nlohmann::json& run);

struct RunRecord {
  std::filesystem::path directory;
  nlohmann::json run = nlohmann::json::object();  ///< run.json
  std::string problem = {};                       ///< why that is not there, in a line; empty where it is
  std::vector<nlohmann::json> steps = {};         ///< of metrics.jsonl, in its order
  std::vector<nlohmann::json> evaluations = {};   ///< the same
  std::vector<nlohmann::json> checkpoints = {};   ///< the same
  std::string checkpoint = {};                    ///< name of the latest one; empty = none
  std::size_t checkpoint_bytes = 0;
  double checkpoint_age = 0.0;  ///< seconds since it was written
  double age = 0.0;             ///< seconds since something was written to metrics.jsonl or run.json
  bool has_metrics = false;     ///< metrics.jsonl is there
  std::size_t unreadable = 0;   ///< lines of it that are none, as the last one may be while it is written, or that
                                ///< are of no step of the run
  bool finished = false;
  std::string ended = {};  ///< how it ended without having finished, "ended by SIGTERM"; empty where nothing says so

  std::vector<MetricKind> metric_kinds() const { return metric_kinds_of(run); }
  std::string work() const { return work_of(run); }
  /// Steps of the whole run, 0 where that is not known, and how many of them are done.
  std::size_t planned_steps() const;
  std::size_t done_steps() const;
  /// Seconds that the steps still to come take at the median pace of the last ones; negative where nothing says.
  double seconds_left() const;
  /// Mean of the losses of the last `recent_steps` that are finite; not a number where none is.
  double recent_loss() const;
  static constexpr std::size_t recent_steps = 50;
  /// The step of the last evaluation that was the best so far; nothing where there is none.
  std::optional<std::size_t> best_step() const;
};

/// Reads the directory of a run again and again, of metrics.jsonl each time what is new.
class RunFollower {
 public:
  /// `kept`: of each kind of rows about so many last ones are kept, `recent_steps` at least.
  explicit RunFollower(std::filesystem::path directory, std::size_t kept = std::numeric_limits<std::size_t>::max() / 2);

  /// Errors: std::runtime_error where metrics.jsonl cannot be read. What is wrong with run.json is the `problem`.
  const RunRecord& update();

 private:
  void read_description();
  void read_metrics();
  void take(nlohmann::json&& row);

  RunRecord record_;
  MetricsReader metrics_;
  std::size_t kept_, foreign_ = 0;  ///< rows of no step of the run
};

/// Reads the directory of a run. A last line that is still being written is left out. Errors: std::runtime_error where
/// there is no run.json, or it is not one.
RunRecord read_run(const std::filesystem::path& directory);

}  // namespace mylos::train
