#pragma once

#include "train/directory_lock.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>

/// The directory a run writes into, and what happens to what is there already.
namespace mylos::train {

/// How a run was started, as far as an existing directory is concerned.
struct OutputRules {
  bool overwrite = false;
  bool requeued = false;                   ///< Slurm put this job back into the queue and starts it again
  std::string job = {};                    ///< Slurm's id; empty outside a job
  bool resume = true;                      ///< an unfinished run goes on from its latest checkpoint
  std::filesystem::path resume_from = {};  ///< the checkpoint, or a directory of some, to go on from; empty = its own
};

/// With SLURM_RESTART_COUNT and SLURM_JOB_ID of the environment. `resume` is "auto", "never" or a path.
OutputRules output_rules(bool overwrite, const std::string& resume = "auto");

/// A directory is a run's if it holds our run.json, which says under "state" whether the run is finished. A finished
/// run is left alone; an unfinished one goes on from its latest checkpoint, and in a requeued job also with
/// --overwrite; where it has none, it begins anew only with --overwrite or in a requeued job. Where a run was killed
/// while it removed an earlier one's files, the next one removes the rest. Files that no run writes are never touched,
/// and refused.
class OutputDirectory {
 public:
  /// The key of run.json that is ours: {"finished": bool, "slurm_job": id or null}, with "ended": how, where it ended
  /// without having finished and could say so, and "clearing": true while what an earlier run left is removed.
  static constexpr const char* state_key = "state";

  /// Decides, and where a run may begin makes the directory (with its parents) and locks it; nothing is removed yet.
  /// Errors: std::runtime_error of one line where a run may not begin, or nothing can be written there.
  OutputDirectory(std::filesystem::path path, const OutputRules& rules);

  /// A finished run is there: print its results and exit 0.
  bool finished() const { return !lock_; }
  /// The checkpoint that the run goes on from; empty where it begins at step 1.
  const std::filesystem::path& checkpoint() const { return checkpoint_; }
  /// run.json of the finished run.
  nlohmann::ordered_json saved_run() const;
  /// results.json of the finished run; nothing where it had no evaluation.
  std::optional<std::string> results() const;

  /// Errors: std::runtime_error with both numbers where `bytes` do not fit: what best/, last/ and the temporary copy
  /// that replaces one of them take.
  void check_space(std::size_t bytes) const;
  /// Writes run.json, not finished, and removes what an earlier run left, unless this one goes on with it. `run` is a
  /// JSON object.
  void begin(nlohmann::ordered_json run);
  /// Marks the run finished: the very last thing it does.
  void finish();
  /// Says that it does not go on, and why: "ended by SIGTERM". The next begin() takes it back.
  void end(const std::string& how);

  const std::filesystem::path& path() const { return path_; }

 private:
  void write_run();
  void clear();
  void choose_checkpoint(bool holds_unfinished);

  std::filesystem::path path_;
  OutputRules rules_;
  std::filesystem::path checkpoint_;
  bool goes_on_ = false;  ///< with the run that is there
  std::optional<DirectoryLock> lock_;
  nlohmann::ordered_json run_;
};

}  // namespace mylos::train
