#include "train/monitor/output_start.hpp"

#include "core/base/files/directory_lock.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/options/walltime.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/printable.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "train/engine/evaluation_files.hpp"
#include "train/engine/models/best_model.hpp"
#include "train/monitor/gpu_record.hpp"
#include "train/monitor/output_directory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <system_error>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

struct ExistingRun {
  OrderedJson run;  ///< contents of run.json
  bool finished = false;
  bool clearing = false;  ///< killed while it removed the files of an earlier run
  std::string job;        ///< of Slurm
  std::string pbs_job;
};

/// Whether a scheduler has started the job of an existing run again, which then keeps to its run: the command is that
/// of its first start, --overwrite included. Unknown: the run is of this PBS job, and qstat does not say. It may also
/// be an earlier command of an interactive job, but nothing of it is removed.
enum class Restarted { no, yes, unknown };

Restarted restarted(const ExistingRun& run, const OutputRules& rules) {
  if (rules.requeued) return run.job == rules.job ? Restarted::yes : Restarted::no;
  if (rules.pbs_job.empty() || run.pbs_job != rules.pbs_job) return Restarted::no;
  const std::optional<double> starts = pbs_start_count(rules.pbs_job);
  if (!starts) return Restarted::unknown;
  return *starts > 1.0 ? Restarted::yes : Restarted::no;
}

/// Returns the run whose run.json is in `path`; nullopt if there is no such file or another program wrote it. Errors:
/// run.json is a pipe, on which reading would wait, or anything else that is not a file.
std::optional<ExistingRun> existing_run(const fs::path& path) {
  std::error_code unreadable;  // reported by the call that lists the directory
  const fs::file_status status = fs::status(path / run_file_name, unreadable);
  if (!fs::exists(status)) return std::nullopt;
  if (!fs::is_regular_file(status)) {
    refuse_output(
        path,
        fmt::format(
            "{} in it is a directory, a pipe or a device instead of a file; remove it, or choose another directory",
            run_file_name));
  }
  OrderedJson run = try_parse_ordered_json(read_text(path / run_file_name));
  const OrderedJson state = run.is_object() ? run.value(OutputDirectory::state_key, OrderedJson()) : OrderedJson();
  if (!state.is_object() || !state.contains("finished") || !state["finished"].is_boolean()) return std::nullopt;
  const auto text = [&](const char* key) {
    const OrderedJson value = state.value(key, OrderedJson());
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  return ExistingRun{std::move(run), state["finished"].get<bool>(), state.contains(OutputDirectory::clearing_key),
                     text(OutputDirectory::slurm_job_key), text(OutputDirectory::pbs_job_key)};
}

CommandDifference difference_from(const ExistingRun& run, const OutputRules& rules) {
  return rules.compare ? rules.compare(run.run) : CommandDifference();
}

/// Returns the line for options that a restarted job does not follow; empty if there are none.
std::string unused_line(const OutputRules& rules, Restarted restart) {
  std::vector<std::string> unused;
  if (rules.overwrite && restart != Restarted::no) unused.push_back(setting("overwrite"));
  if (!rules.resume || !rules.resume_from.empty())
    unused.push_back(setting("resume", rules.resume ? rules.resume_from.string() : "never"));
  if (unused.empty()) return {};
  const std::string are_not_used =
      fmt::format("{} {} not used", fmt::join(unused, " and "), unused.size() == 1 ? "is" : "are");
  switch (restart) {
    case Restarted::no:
      return "this run has checkpoints of its own: " + are_not_used;
    case Restarted::yes:
      return "this job was started again and keeps to its own run: " + are_not_used;
    case Restarted::unknown:
      break;
  }
  return fmt::format(
      "this run is of job {}, and qstat does not say whether PBS has started the job again: {}, so that nothing is "
      "lost; remove the directory to start over",
      rules.pbs_job, are_not_used);
}

void refuse_foreign_files(const fs::path& path, bool holds_run) {
  for (const std::string& name : names_in(path)) {
    if (holds_run ? is_run_file(name) : is_scaffolding(name)) continue;
    refuse_output(path, fmt::format("contains {}, which no training run wrote; choose an empty or a new directory",
                                    printable(name)));
  }
}

/// The contents of a directory.
struct Contents {
  std::optional<ExistingRun> run;
  Restarted restarted = Restarted::no;
  bool is_kept = false;               ///< a finished run whose files are kept
  CommandDifference difference = {};  ///< difference from the finished run
};

/// Errors: `path` is a file, or holds foreign files.
Contents look_into(const fs::path& path, const OutputRules& rules) {
  std::error_code unreadable;  // reported by the call that lists or creates it
  if (!fs::exists(path, unreadable)) return {};
  if (!fs::is_directory(path, unreadable)) refuse_output(path, "is a file; choose a directory");
  Contents contents{.run = existing_run(path)};
  if (contents.run) contents.restarted = restarted(*contents.run, rules);
  const bool is_overwritten = rules.overwrite && contents.restarted == Restarted::no;
  if (contents.run && contents.run->finished && !is_overwritten) {
    contents.difference = difference_from(*contents.run, rules);
    contents.is_kept = !contents.difference.extends || !contents.difference.options.empty();
  }
  if (!contents.is_kept) refuse_foreign_files(path, contents.run.has_value());
  return contents;
}

fs::path own_checkpoints(const fs::path& path) { return path / parallel::checkpoints_name; }

/// Returns whether --resume names the directory itself, its checkpoints, or one of them.
bool names_own(const fs::path& path, const OutputRules& rules) {
  if (rules.resume_from.empty()) return false;
  std::error_code unreadable;  // counts as another directory
  const fs::path own = fs::weakly_canonical(fs::absolute(own_checkpoints(path)), unreadable);
  fs::path named = fs::weakly_canonical(fs::absolute(rules.resume_from), unreadable);
  if (!named.has_filename()) named = named.parent_path();  // "runs/long/"
  return named == own.parent_path() || named == own || named.parent_path() == own;
}

/// Returns the checkpoint that --resume names. Errors: there is none.
fs::path named_checkpoint(const OutputRules& rules) {
  fs::path named = parallel::resolve_checkpoint(rules.resume_from);
  if (named.empty()) throw SettingError("resume", rules.resume_from.string(), "contains no checkpoint");
  return named;
}

/// Starts at step 1, or from the checkpoint of --resume, and removes existing files. Errors: --resume names one of
/// them.
OutputStart begin_anew(const fs::path& path, const OutputRules& rules, std::string remark = {}) {
  OutputStart start{.remark = std::move(remark)};
  if (rules.resume_from.empty()) return start;
  start.checkpoint = named_checkpoint(rules);
  if (names_own(path, rules)) {
    refuse_output(path, "contains the checkpoint to resume from, which would be removed; choose another");
  }
  return start;
}

OutputStart begin_without_checkpoint(const fs::path& path, const OutputRules& rules, const Contents& contents) {
  if (rules.overwrite) return begin_anew(path, rules);
  std::error_code unreadable;  // reported by the call that removes it
  if (fs::exists(path / "last", unreadable)) {
    refuse_output(path, fmt::format("contains an unfinished run with a model in last/, but no checkpoint to resume "
                                    "from; {} starts over, or choose another directory",
                                    setting("overwrite")));
  }
  const std::vector<std::string> differing = difference_from(*contents.run, rules).options;
  if (contents.restarted != Restarted::yes && !differing.empty()) {
    refuse_output(path, fmt::format("contains an unfinished run with other options and no checkpoint to resume from: "
                                    "{}; {} starts over, or choose another directory",
                                    fmt::join(differing, "; "), setting("overwrite")));
  }
  return begin_anew(
      path, rules,
      fmt::format("{} contains this run, interrupted before its first checkpoint: it starts over", path.string()));
}

OutputStart take_up_unfinished(const fs::path& path, const OutputRules& rules, const Contents& contents) {
  const bool is_restarted = contents.restarted == Restarted::yes;
  if (!is_restarted && !rules.overwrite && names_own(path, rules))
    return {.goes_on = true, .checkpoint = named_checkpoint(rules)};
  fs::path latest = parallel::resolve_checkpoint(own_checkpoints(path));
  if (latest.empty()) return begin_without_checkpoint(path, rules, contents);
  if (contents.restarted == Restarted::no && rules.overwrite) return begin_anew(path, rules);
  if (!is_restarted && !rules.overwrite && !rules.resume) {
    refuse_output(path, fmt::format("contains an unfinished run; {} continues it, {} starts over",
                                    setting("resume", "auto"), setting("overwrite")));
  }
  return {.goes_on = true, .checkpoint = std::move(latest), .remark = unused_line(rules, contents.restarted)};
}

OutputStart keep(Contents contents, const OutputRules& rules) {
  return {.finished = true,
          .differing = std::move(contents.difference.options),
          .remark = rules.overwrite ? unused_line(rules, contents.restarted) : ""};
}

/// Continues a finished run, or one interrupted while it was extended.
OutputStart extend(const fs::path& path, const Contents& contents) {
  fs::path latest;
  if (contents.run && !contents.run->clearing) latest = parallel::resolve_checkpoint(own_checkpoints(path));
  if (latest.empty()) {
    refuse_output(path, contents.run ? fmt::format("its run has no checkpoint, which {} needs; start over with {}",
                                                   setting("extend"), setting("overwrite"))
                                     : fmt::format("contains no run, which {} needs; leave it out", setting("extend")));
  }
  return {.goes_on = true, .checkpoint = std::move(latest)};
}

namespace fs = std::filesystem;

constexpr std::array written_names = {run_file_name,
                                      "metrics.jsonl",
                                      "results.json",
                                      "predictions.json",
                                      "predictions.jsonl",
                                      "nbest_predictions.json",
                                      "null_odds.json",
                                      "best",
                                      "last",
                                      kept_models_name,
                                      "report.html",
                                      evaluations_name,
                                      parallel::checkpoints_name,
                                      gpu_records_name};
constexpr std::string_view event_prefix = "events.out.tfevents.";

}  // namespace

OutputRules output_rules(bool overwrite, const std::string& resume) {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  const std::string job = variable("SLURM_JOB_ID");
  return {.overwrite = overwrite,
          .requeued = std::strtol(variable("SLURM_RESTART_COUNT").c_str(), nullptr, 10) > 0,
          .job = job,
          .pbs_job = job.empty() ? variable("PBS_JOBID") : "",
          .resume = resume != "never",
          .resume_from = resume == "never" || resume == "auto" ? "" : resume};
}

std::optional<OutputStart> finished_start(const fs::path& path, const OutputRules& rules) {
  Contents contents = look_into(path, rules);
  return contents.is_kept ? std::optional(keep(std::move(contents), rules)) : std::nullopt;
}

OutputStart decide_start(const fs::path& path, const OutputRules& rules) {
  Contents contents = look_into(path, rules);
  if (contents.is_kept) return keep(std::move(contents), rules);
  if (rules.extend) return extend(path, contents);
  const std::optional<ExistingRun>& run = contents.run;
  const bool is_unfinished = run && !run->finished && !run->clearing;
  return is_unfinished ? take_up_unfinished(path, rules, contents) : begin_anew(path, rules);
}

bool is_scaffolding(std::string_view name) {
  const bool is_unfinished_run = name != run_file_name && whole_name(name) == run_file_name;
  return name == DirectoryLock::file_name || name == probe_name || is_unfinished_run;
}

bool is_run_file(std::string_view name) {
  const std::string_view whole = whole_name(name);
  return is_scaffolding(name) || name.starts_with(event_prefix) ||
         std::ranges::find(written_names, whole) != written_names.end();
}

std::vector<std::string> names_in(const fs::path& path) {
  std::error_code code;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(path, code), end; !code && entry != end; entry.increment(code)) {
    names.push_back(entry->path().filename().string());
  }
  if (code) refuse_output(path, fmt::format("cannot be read: {}", code.message()));
  std::ranges::sort(names);
  return names;
}

void refuse_output(const fs::path& path, std::string_view why) { throw SettingError("output", path.string(), why); }

}  // namespace mylos::train
