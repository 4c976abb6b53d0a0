#pragma once

#include "core/base/files/directory_lock.hpp"
#include "train/monitor/output_start.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>

/// The output directory of a run, and the handling of files that are already there.
namespace mylos::train {

/// Holds the directory for one run, which starts as decide_start() says. If a run was killed while it removed the files
/// of an earlier one, the next run removes the rest. Files that no run writes are never touched.
class OutputDirectory {
 public:
  /// The key of the run's state in run.json: {"finished": bool, "slurm_job": id or null}, with "pbs_job": id in a job
  /// of PBS, "ended": reason, if the run ended unfinished and could record it, and "clearing": true while files of an
  /// earlier run are being removed.
  static constexpr const char* state_key = "state";
  static constexpr const char* slurm_job_key = "slurm_job";
  static constexpr const char* pbs_job_key = "pbs_job";
  static constexpr const char* clearing_key = "clearing";

  /// Decides how the run starts and, if it may start, creates the directory (with its parents) and locks it. Removes
  /// nothing yet. Takes changes by other processes into account by reading the directory again under the lock. Errors:
  /// std::runtime_error with a one-line message if no run may start or the directory is not writable.
  OutputDirectory(std::filesystem::path path, const OutputRules& rules);

  /// Returns true if a finished run is there and nothing needs training: print its results, unless options differ.
  bool finished() const { return start_.finished; }
  /// Returns the checkpoint that the run resumes from; empty if it starts at step 1.
  const std::filesystem::path& checkpoint() const { return start_.checkpoint; }
  const OutputStart& start() const { return start_; }
  /// Returns results.json of the finished run; nullopt if it had no evaluation.
  std::optional<std::string> results() const;

  /// Checks that `bytes` fit on the disk: best/, last/ and the temporary copy that replaces one of them. Errors:
  /// std::runtime_error with the required and the free bytes.
  void check_space(std::size_t bytes) const;
  /// Writes run.json in unfinished state and removes the files of an earlier run, unless this run resumes it. `run` is
  /// a JSON object.
  void begin(nlohmann::ordered_json run);
  /// Marks the run as finished. Must be the run's last action.
  void finish();
  /// Records that the run ended unfinished, and why: "ended by SIGTERM". The next begin() removes the record.
  void end(const std::string& how);

  /// Returns the lock; null if a finished run is there, which is only read.
  const DirectoryLock* lock() const { return lock_ ? &*lock_ : nullptr; }

  const std::filesystem::path& path() const { return path_; }

 private:
  void write_run();
  void clear();

  std::filesystem::path path_;
  OutputRules rules_;
  std::optional<DirectoryLock> lock_;
  OutputStart start_;
  nlohmann::ordered_json run_;
};

}  // namespace mylos::train
