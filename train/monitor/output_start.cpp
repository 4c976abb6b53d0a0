#include "train/monitor/output_start.hpp"

#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/base/printable.hpp"
#include "core/base/setting_error.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "train/monitor/output_directory.hpp"
#include "train/monitor/run_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  std::string job;
};

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
  const OrderedJson job = state.value("slurm_job", OrderedJson());
  return ExistingRun{std::move(run), state["finished"].get<bool>(), state.contains(OutputDirectory::clearing_key),
                     job.is_string() ? job.get<std::string>() : std::string()};
}

CommandDifference difference_from(const ExistingRun& run, const OutputRules& rules) {
  return rules.compare ? rules.compare(run.run) : CommandDifference();
}

/// A requeued job that finished before it was requeued must not start anew because of its --overwrite.
bool is_overwritten(const ExistingRun& run, const OutputRules& rules) {
  return rules.overwrite && !(rules.requeued && run.job == rules.job);
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
  bool is_kept = false;               ///< a finished run whose files are kept
  CommandDifference difference = {};  ///< difference from the finished run
};

/// Errors: `path` is a file, or holds foreign files.
Contents look_into(const fs::path& path, const OutputRules& rules) {
  std::error_code unreadable;  // reported by the call that lists or creates it
  if (!fs::exists(path, unreadable)) return {};
  if (!fs::is_directory(path, unreadable)) refuse_output(path, "is a file; choose a directory");
  Contents contents{.run = existing_run(path)};
  if (contents.run && contents.run->finished && !is_overwritten(*contents.run, rules)) {
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

OutputStart begin_without_checkpoint(const fs::path& path, const OutputRules& rules, const ExistingRun& found) {
  if (rules.overwrite) return begin_anew(path, rules);
  std::error_code unreadable;  // reported by the call that removes it
  if (fs::exists(path / "last", unreadable)) {
    refuse_output(path, fmt::format("contains an unfinished run with a model in last/, but no checkpoint to resume "
                                    "from; {} starts over, or choose another directory",
                                    setting("overwrite")));
  }
  const std::vector<std::string> differing = difference_from(found, rules).options;
  if (!rules.requeued && !differing.empty()) {
    refuse_output(path, fmt::format("contains an unfinished run with other options and no checkpoint to resume from: "
                                    "{}; {} starts over, or choose another directory",
                                    fmt::join(differing, "; "), setting("overwrite")));
  }
  return begin_anew(
      path, rules,
      fmt::format("{} contains this run, interrupted before its first checkpoint: it starts over", path.string()));
}

/// Resumes from the run's own latest checkpoint, overriding --resume.
OutputStart go_on(fs::path latest, const OutputRules& rules) {
  OutputStart start{.goes_on = true, .checkpoint = std::move(latest)};
  const bool was_told_otherwise = !rules.resume || !rules.resume_from.empty();
  if (was_told_otherwise) {
    start.remark = fmt::format("this run has checkpoints of its own: {} is not used",
                               setting("resume", rules.resume ? rules.resume_from.string() : "never"));
  }
  return start;
}

OutputStart take_up_unfinished(const fs::path& path, const OutputRules& rules, const ExistingRun& found) {
  if (!rules.requeued && !rules.overwrite && names_own(path, rules))
    return {.goes_on = true, .checkpoint = named_checkpoint(rules)};
  fs::path latest = parallel::resolve_checkpoint(own_checkpoints(path));
  if (latest.empty()) return begin_without_checkpoint(path, rules, found);
  if (rules.requeued) return go_on(std::move(latest), rules);
  if (rules.overwrite) return begin_anew(path, rules);
  if (!rules.resume) {
    refuse_output(path, fmt::format("contains an unfinished run; {} continues it, {} starts over",
                                    setting("resume", "auto"), setting("overwrite")));
  }
  return go_on(std::move(latest), rules);
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

}  // namespace

OutputRules output_rules(bool overwrite, const std::string& resume) {
  const char* count = std::getenv("SLURM_RESTART_COUNT");
  const char* job = std::getenv("SLURM_JOB_ID");
  return {.overwrite = overwrite,
          .requeued = count != nullptr && std::strtol(count, nullptr, 10) > 0,
          .job = job != nullptr ? job : "",
          .resume = resume != "never",
          .resume_from = resume == "never" || resume == "auto" ? "" : resume};
}

std::optional<OutputStart> finished_start(const fs::path& path, const OutputRules& rules) {
  Contents contents = look_into(path, rules);
  if (!contents.is_kept) return std::nullopt;
  return OutputStart{.finished = true, .differing = std::move(contents.difference.options)};
}

OutputStart decide_start(const fs::path& path, const OutputRules& rules) {
  const Contents contents = look_into(path, rules);
  if (contents.is_kept) return {.finished = true, .differing = contents.difference.options};
  if (rules.extend) return extend(path, contents);
  const std::optional<ExistingRun>& run = contents.run;
  const bool is_unfinished = run && !run->finished && !run->clearing;
  return is_unfinished ? take_up_unfinished(path, rules, *run) : begin_anew(path, rules);
}

}  // namespace mylos::train
