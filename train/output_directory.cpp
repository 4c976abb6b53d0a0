#include "train/output_directory.hpp"

#include "core/error.hpp"
#include "data/files.hpp"
#include "parallel/checkpoint_directory.hpp"
#include "train/evaluation_files.hpp"
#include "train/gpu_record.hpp"
#include "train/quantities.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* run_file = "run.json";
constexpr const char* clearing_key = "clearing";
constexpr std::array written_names = {
    run_file, "metrics.jsonl", "results.json", "predictions.json", "nbest_predictions.json",   "null_odds.json",
    "best",   "last",          "report.html",  evaluations_name,   parallel::checkpoints_name, gpu_records_name};
constexpr std::string_view event_prefix = "events.out.tfevents.";
constexpr std::string_view probe_name = ".probe", partial_suffix = ".partial-";

[[noreturn]] void refuse(const fs::path& path, std::string_view why) {
  fail(fmt::format("--output {}: {}", path.string(), why));
}

/// What is there before run.json is; the suffix is data::StagedFile's.
bool is_scaffolding(std::string_view name) {
  return name == DirectoryLock::file_name || name == probe_name ||
         name.starts_with(fmt::format("{}{}", run_file, partial_suffix));
}

/// What a run writes, or its killed predecessor left half-written.
bool is_ours(std::string_view name) {
  const std::string_view whole = name.substr(0, name.find(partial_suffix));
  return is_scaffolding(name) || name.starts_with(event_prefix) ||
         std::ranges::find(written_names, whole) != written_names.end();
}

std::vector<std::string> names_in(const fs::path& path) {
  std::error_code code;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(path, code), end; !code && entry != end; entry.increment(code)) {
    names.push_back(entry->path().filename().string());
  }
  if (code) refuse(path, fmt::format("cannot be read: {}", code.message()));
  std::ranges::sort(names);
  return names;
}

struct ExistingRun {
  bool finished = false;
  bool clearing = false;  ///< killed while it removed what an earlier run left
  std::string job;
};

/// The run whose run.json is in `path`; nothing where there is no such file or it is another program's.
std::optional<ExistingRun> existing_run(const fs::path& path) {
  std::error_code unreadable;  // is told by the call that lists the directory
  if (!fs::exists(path / run_file, unreadable)) return std::nullopt;
  const Json run = Json::parse(data::read_text(path / run_file), nullptr, false);
  const Json state = run.is_object() ? run.value(OutputDirectory::state_key, Json()) : Json();
  if (!state.is_object() || !state.contains("finished") || !state["finished"].is_boolean()) return std::nullopt;
  const Json job = state.value("slurm_job", Json());
  return ExistingRun{state["finished"].get<bool>(), state.contains(clearing_key),
                     job.is_string() ? job.get<std::string>() : std::string()};
}

/// A requeued job that finished before it was put back must not begin anew for its --overwrite.
bool is_to_be_kept(const ExistingRun& run, const OutputRules& rules) {
  return run.finished && (!rules.overwrite || (rules.requeued && run.job == rules.job));
}

void refuse_foreign_files(const fs::path& path, bool holds_run) {
  for (const std::string& name : names_in(path)) {
    if (holds_run ? is_ours(name) : is_scaffolding(name)) continue;
    refuse(path, fmt::format("holds {}, which no training run wrote; choose an empty or a new directory",
                             data::printable(name)));
  }
}

void make_directory(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) refuse(path, fmt::format("cannot be created: {}", code.message()));
}

/// Takes `bytes` on the disk and gives them back; returns the error's code, 0 where they are to be had.
int try_to_take(const fs::path& file, std::size_t bytes) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno;
  const int code = ::posix_fallocate(descriptor, 0, static_cast<off_t>(std::max<std::size_t>(bytes, 1)));
  ::close(descriptor);
  ::unlink(file.c_str());
  return code;
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

OutputDirectory::OutputDirectory(fs::path path, const OutputRules& rules) : path_(std::move(path)), rules_(rules) {
  std::error_code unreadable;  // is told by the call that lists or makes it
  std::optional<ExistingRun> run;
  if (fs::exists(path_, unreadable)) {
    if (!fs::is_directory(path_, unreadable)) refuse(path_, "is a file; choose a directory");
    run = existing_run(path_);
    if (run && is_to_be_kept(*run, rules)) return;
    refuse_foreign_files(path_, run.has_value());
  }
  make_directory(path_);
  lock_.emplace(path_);
  // What is there beside a run that was killed while it cleared is an earlier one's.
  choose_checkpoint(run && !run->finished && !run->clearing);
}

/// Errors: an unfinished run that may neither go on nor begin anew; a checkpoint that is not there.
void OutputDirectory::choose_checkpoint(bool holds_unfinished) {
  const fs::path own = path_ / parallel::checkpoints_name;
  if (!rules_.resume_from.empty()) {
    checkpoint_ = parallel::resolve_checkpoint(rules_.resume_from);
    if (checkpoint_.empty()) fail(fmt::format("--resume {}: no checkpoint is there", rules_.resume_from.string()));
    std::error_code unreadable;  // then it is another's
    const bool is_own = fs::equivalent(checkpoint_.parent_path(), own, unreadable);
    if (is_own && !holds_unfinished) refuse(path_, "would be cleared of the checkpoint to resume from; choose another");
    goes_on_ = is_own;
  } else if (rules_.resume && holds_unfinished && (!rules_.overwrite || rules_.requeued)) {
    checkpoint_ = parallel::resolve_checkpoint(own);
    goes_on_ = !checkpoint_.empty();
  }
  if (goes_on_ || !holds_unfinished || rules_.overwrite || rules_.requeued) return;
  const bool has_some = !parallel::list_checkpoints(own).empty();
  refuse(path_, has_some ? "holds a run that did not finish; --resume auto goes on with it, --overwrite starts anew"
                         : "holds a run that did not finish and has no checkpoint to resume from; --overwrite starts "
                           "anew");
}

Json OutputDirectory::saved_run() const {
  require(finished(), "OutputDirectory::saved_run: no finished run is there");
  return Json::parse(data::read_text(path_ / run_file));
}

std::optional<std::string> OutputDirectory::results() const {
  const fs::path file = path_ / "results.json";
  if (!fs::exists(file)) return std::nullopt;
  return data::read_text(file);
}

void OutputDirectory::check_space(std::size_t bytes) const {
  std::error_code unknown;
  const fs::space_info space = fs::space(path_, unknown);
  if (!unknown && space.available < bytes) {
    refuse(path_, fmt::format("{} are needed and {} are free there; make room or choose another directory",
                              bytes_text(bytes), bytes_text(space.available)));
  }
  // A quota is seen only by taking the space.
  if (const int code = try_to_take(path_ / probe_name, bytes); code != 0) {
    refuse(path_, fmt::format("{} are needed and cannot be had there: {}", bytes_text(bytes), std::strerror(code)));
  }
}

void OutputDirectory::begin(Json run) {
  require(!finished(), "OutputDirectory::begin: a finished run is there");
  require(run.is_object(), "OutputDirectory::begin: run is no JSON object");
  run_ = std::move(run);
  run_[state_key] = {{"finished", false}, {"slurm_job", rules_.job.empty() ? Json() : Json(rules_.job)}};
  if (!goes_on_) clear();
  write_run();
}

/// Run.json is there first, so that a process that is killed here leaves neither files of nobody nor an earlier run's
/// checkpoints as if they were this one's: the next start clears on.
void OutputDirectory::clear() {
  run_[state_key][clearing_key] = true;
  write_run();
  for (const std::string& name : names_in(path_)) {
    if (name == run_file || name == DirectoryLock::file_name || !is_ours(name)) continue;
    std::error_code code;
    fs::remove_all(path_ / name, code);
    if (code) refuse(path_, fmt::format("cannot remove {}: {}", name, code.message()));
  }
  run_[state_key].erase(clearing_key);
}

void OutputDirectory::finish() {
  require(run_.is_object(), "OutputDirectory::finish: the run did not begin");
  run_[state_key]["finished"] = true;
  write_run();
}

void OutputDirectory::end(const std::string& how) {
  require(run_.is_object(), "OutputDirectory::end: the run did not begin");
  run_[state_key]["ended"] = how;
  write_run();
}

void OutputDirectory::write_run() {
  data::write_text(path_ / run_file, run_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace mylos::train
