#pragma once

#include "core/base/directory_lock.hpp"
#include "train/monitor/output_start.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>

/// The directory a run writes into, and what happens to what is there already.
namespace mylos::train {

/// Holds the directory for one run, which starts in it as decide_start() says. Where a run was killed while it removed
/// an earlier one's files, the next one removes the rest. Files that no run writes are never touched.
class OutputDirectory {
 public:
  /// The key of run.json that is ours: {"finished": bool, "slurm_job": id or null}, with "ended": how, where it ended
  /// without having finished and could say so, and "clearing": true while what an earlier run left is removed.
  static constexpr const char* state_key = "state";
  static constexpr const char* clearing_key = "clearing";

  /// Decides, and where a run may begin makes the directory (with its parents) and locks it; nothing is removed yet.
  /// What another process changes until then counts: the directory is read again under the lock. Errors:
  /// std::runtime_error of one line where a run may not begin, or nothing can be written there.
  OutputDirectory(std::filesystem::path path, const OutputRules& rules);

  /// A finished run is there, and nothing is to be trained: print its results, unless options differ.
  bool finished() const { return start_.finished; }
  /// The checkpoint that the run goes on from; empty where it begins at step 1.
  const std::filesystem::path& checkpoint() const { return start_.checkpoint; }
  const OutputStart& start() const { return start_; }
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

  /// Why nothing keeps another run from writing there at the same time; empty where the directory is locked.
  std::string lock_obstacle() const { return lock_ ? lock_->obstacle() : ""; }

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
