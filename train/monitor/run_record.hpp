#pragma once

#include "train/engine/metrics.hpp"
#include "train/engine/samples/work_kind.hpp"
#include "train/monitor/metrics_reader.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Reads a run from its files, during the run or afterwards, without locking.
namespace mylos::train {

/// Key in "resolved" of run.json: the metrics of the run's task.
inline constexpr const char* metrics_key = "metrics";
/// Returns [{"name": ..., "title": ..., "unit": ..., "larger_is_better": ...}, ...].
nlohmann::ordered_json to_json(std::span<const MetricKind> kinds);

/// Key in "resolved" of run.json: the unit of work that steps count, as WorkKind::name.
inline constexpr const char* work_key = "counts";

/// Returns the metrics listed in a run.json. If there are none and the file does not name the unit of work either, it
/// is of a version that only knew question answering, and its metrics are returned.
std::vector<MetricKind> metric_kinds_of(const nlohmann::json& run);
/// Returns the unit of work that a run's steps count, from its run.json; "tokens" if it is not there.
std::string work_of(const nlohmann::json& run);

struct RunRecord {
  std::filesystem::path directory;
  nlohmann::json run = nlohmann::json::object();  ///< contents of run.json
  std::string problem = {};                       ///< one line on why run.json is missing or unreadable; empty if it
                                                  ///< was read
  std::vector<nlohmann::json> steps = {};         ///< step rows of metrics.jsonl, in order
  std::vector<nlohmann::json> evaluations = {};   ///< evaluation rows, likewise
  std::vector<nlohmann::json> checkpoints = {};   ///< checkpoint rows, likewise
  std::string checkpoint = {};                    ///< name of the latest checkpoint; empty = none
  std::size_t checkpoint_bytes = 0;
  double checkpoint_age = 0.0;  ///< seconds since the latest checkpoint was written
  double age = 0.0;             ///< seconds since metrics.jsonl or run.json was last written
  bool has_metrics = false;     ///< metrics.jsonl exists
  std::size_t unreadable = 0;   ///< lines of metrics.jsonl that are not rows (the last may be incomplete), or that
                                ///< belong to no step of the run
  bool finished = false;
  std::string ended = {};  ///< how it ended unfinished: "ended by SIGTERM"; empty if unknown

  std::vector<MetricKind> metric_kinds() const { return metric_kinds_of(run); }
  /// Returns those of metric_kinds() that tell the quality of a model, and not the course of training.
  std::vector<MetricKind> score_kinds() const;
  std::string work() const { return work_of(run); }
  /// Return the total steps of the run, or 0 if unknown, and the number of completed steps.
  std::size_t planned_steps() const;
  std::size_t done_steps() const;
  /// Returns the steps of an epoch, computed from the run's steps and epochs in run.json; 0 if unknown.
  std::size_t steps_per_epoch() const;
  /// Returns the seconds that the remaining steps take at the median pace of the last ones; negative if unknown.
  double seconds_left() const;
  /// Returns the mean of the finite losses among the last `recent_steps` steps; NaN if there is none.
  double recent_loss() const;
  static constexpr std::size_t recent_steps = 50;
  bool has_ended() const { return finished || !ended.empty(); }
  /// Returns whether the run has written nothing for a minute and for ten of its steps. It may have been killed or
  /// hang; its files cannot tell which.
  bool is_quiet() const;
  /// Returns the step of the last evaluation that was the best so far; nullopt if there is none.
  std::optional<std::size_t> best_step() const;
};

/// Reads the directory of a run repeatedly. Reads only the lines that were added to metrics.jsonl.
class RunFollower {
 public:
  /// `kept` is the approximate number of last rows kept of each kind, at least `recent_steps`.
  explicit RunFollower(std::filesystem::path directory, std::size_t kept = std::numeric_limits<std::size_t>::max() / 2);

  /// Errors: std::runtime_error if metrics.jsonl cannot be read. Errors of run.json are stored in `problem`.
  const RunRecord& update();

 private:
  void read_description();
  void read_metrics();
  void take(nlohmann::json&& row);

  RunRecord record_;
  MetricsReader metrics_;
  std::size_t kept_, foreign_ = 0;  ///< rows that belong to no step of the run
};

/// Reads the directory of a run. Ignores an incomplete last line. Errors: std::runtime_error if there is no run.json or
/// it is invalid.
RunRecord read_run(const std::filesystem::path& directory);

}  // namespace mylos::train
