#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

/// Decides how a run starts in a directory that may hold one already.
namespace mylos::train {

/// How this command differs from the one that a run.json records.
struct CommandDifference {
  std::vector<std::string> options = {};  ///< "seed 42, now 7": what no run that goes on may change
  bool extends = false;                   ///< it was told to go on beyond the end of the recorded one
};

/// How a run was started, as far as an existing directory is concerned.
struct OutputRules {
  bool overwrite = false;
  bool requeued = false;                   ///< Slurm put this job back into the queue and starts it again
  std::string job = {};                    ///< Slurm's id; empty outside a job
  bool resume = true;                      ///< an unfinished run goes on from its latest checkpoint
  std::filesystem::path resume_from = {};  ///< a checkpoint, or a directory of some, from which a fresh start begins
  bool extend = false;                     ///< goes on with a finished run, or with one that is there
  /// Compares this command with that of a run.json. Unset: every run is of the same command.
  std::function<CommandDifference(const nlohmann::ordered_json& saved)> compare = {};
};

/// With SLURM_RESTART_COUNT and SLURM_JOB_ID of the environment. `resume` is "auto", "never" or a path.
OutputRules output_rules(bool overwrite, const std::string& resume = "auto");

/// How a run starts in its output directory.
struct OutputStart {
  bool finished = false;                    ///< a finished run is there and stays: nothing is trained
  std::vector<std::string> differing = {};  ///< options that differ from those of the finished run
  bool goes_on = false;                     ///< with the run that is there, whose files stay
  std::filesystem::path checkpoint = {};    ///< the run starts from it; empty = at step 1
  std::string remark = {};                  ///< one line for the user, where the start may surprise; or empty
};
inline auto members(OutputStart& start) {
  return std::tie(start.finished, start.differing, start.goes_on, start.checkpoint, start.remark);
}

/// The start where a finished run is in `path` and stays as it is; else std::nullopt. Errors: std::runtime_error of one
/// line where no run may start, whatever another process does: a file, or a directory with foreign files.
std::optional<OutputStart> finished_start(const std::filesystem::path& path, const OutputRules& rules);

/// Decides by what is in `path`, which may not exist, and changes nothing. A directory is a run's if it holds our
/// run.json, which says whether the run is finished. docs/checkpoints.md has the rules as a table:
/// - A finished run stays, unless it is overwritten, or extended from its latest checkpoint.
/// - An unfinished one with checkpoints goes on from its latest one in a requeued job. Started by hand it goes on from
///   one of its own that `resume_from` names, begins anew with `overwrite`, and else goes on from its latest one; where
///   `resume` is false it is refused, as is `overwrite` with one of its own.
/// - An unfinished one without any begins anew, unless its command was another, or it has left a model. So does one
/// that was killed while it
///   removed an earlier run's files.
/// Errors: std::runtime_error of one line where no run may start.
OutputStart decide_start(const std::filesystem::path& path, const OutputRules& rules);

}  // namespace mylos::train
