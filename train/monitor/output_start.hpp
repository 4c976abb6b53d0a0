#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

/// Decides how a run starts in a directory that may already hold one.
namespace mylos::train {

inline constexpr const char* run_file_name = "run.json";
/// Written and removed immediately, to find out whether there is enough space.
inline constexpr const char* probe_name = ".probe";

/// Returns whether a file with this name may exist in a directory before its run.json does.
bool is_scaffolding(std::string_view name);
/// Returns whether a run writes a file with this name, or a killed one may have left it incomplete.
bool is_run_file(std::string_view name);

/// Returns the sorted names in the directory `path`. Errors: std::runtime_error with a one-line message if it cannot be
/// read.
std::vector<std::string> names_in(const std::filesystem::path& path);

/// Throws SettingError about the setting "output".
[[noreturn]] void refuse_output(const std::filesystem::path& path, std::string_view why);

/// The differences between this command and the one recorded in run.json.
struct CommandDifference {
  std::vector<std::string> options = {};  ///< differing options that a resumed run must not change: "seed 42, now 7"
  bool extends = false;                   ///< the command continues the recorded run beyond its end
};

/// The settings of a start that matter for an existing directory.
struct OutputRules {
  bool overwrite = false;
  bool requeued = false;                   ///< Slurm has requeued this job and starts it again
  std::string job = {};                    ///< Slurm's job id; empty outside a job
  std::string pbs_job = {};                ///< PBS's job id; qstat says whether PBS has started the job again
  bool resume = true;                      ///< an unfinished run resumes from its latest checkpoint
  std::filesystem::path resume_from = {};  ///< checkpoint, or directory of checkpoints, that a fresh start begins from
  bool extend = false;                     ///< continue a finished run, or one interrupted while it was extended
  /// Compares this command with that of a run.json. If unset, all commands count as equal.
  std::function<CommandDifference(const nlohmann::ordered_json& saved)> compare = {};
};

/// Returns the rules for a command line, with SLURM_RESTART_COUNT, SLURM_JOB_ID and PBS_JOBID from the environment.
/// `resume` is "auto", "never" or a path.
OutputRules output_rules(bool overwrite, const std::string& resume = "auto");

/// The way a run starts in its output directory.
struct OutputStart {
  bool finished = false;                    ///< a finished run is there and is kept: nothing is trained
  std::vector<std::string> differing = {};  ///< options that differ from those of the finished run
  bool goes_on = false;                     ///< continues the run that is there and keeps its files
  std::filesystem::path checkpoint = {};    ///< checkpoint to start from; empty = step 1
  std::string remark = {};                  ///< one line for the user if the start may be surprising, else empty
};
inline auto members(OutputStart& start) {
  auto& [finished, differing, goes_on, checkpoint, remark] = start;  // does not compile if one is forgotten
  return std::tie(finished, differing, goes_on, checkpoint, remark);
}

/// Returns the start if `path` holds a finished run that is kept, else nullopt. Errors: std::runtime_error with a
/// one-line message if no run may start regardless of other processes: `path` is a file, or holds foreign files.
std::optional<OutputStart> finished_start(const std::filesystem::path& path, const OutputRules& rules);

/// Decides from the contents of `path`, which need not exist. Changes nothing. A directory belongs to a run if it holds
/// its run.json, which records its job and whether the run is finished. docs/checkpoints.md has the rules as a table:
/// - A finished run is kept, unless it is overwritten, or extended from its latest checkpoint.
/// - An unfinished run with checkpoints resumes from its latest one if the scheduler has started its job again.
///   Otherwise it resumes from the checkpoint of its own that `resume_from` names, starts anew with `overwrite`, and
///   else resumes from its latest checkpoint. It is refused if `resume` is false, or if `overwrite` is combined with a
///   checkpoint of its own.
/// - An unfinished run without checkpoints starts anew; it is refused if its command differs or it has left a model. A
///   run killed while it removed the files of an earlier run starts anew, too.
/// Errors: std::runtime_error with a one-line message if no run may start.
OutputStart decide_start(const std::filesystem::path& path, const OutputRules& rules);

}  // namespace mylos::train
