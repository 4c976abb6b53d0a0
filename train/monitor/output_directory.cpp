#include "train/monitor/output_directory.hpp"

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/positioned_file.hpp"
#include "core/base/text/quantities.hpp"
#include "train/engine/evaluation_files.hpp"
#include "train/monitor/output_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

void make_directory(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) refuse_output(path, fmt::format("cannot be created: {}", code.message()));
}

/// Reserves `bytes` on the disk and releases them. Removes an existing `file` instead of writing into it, because it
/// may be a link to another location. Errors: std::runtime_error if the space is not available.
void take_and_give_back(const fs::path& file, std::size_t bytes) {
  std::error_code absent;  // or reported by the next statement
  fs::remove(file, absent);
  try {
    PositionedFile probe(file, PositionedFile::Use::create);
    probe.reserve(std::max<std::size_t>(bytes, 1));
    probe.sync_and_close();
  } catch (...) {
    fs::remove(file, absent);
    throw;
  }
  fs::remove(file, absent);
}

std::string one_line(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// Appends `value` with one line per member of an object. An array without objects and arrays takes one line, so that a
/// thousand label names do not take a thousand lines.
void append_json(std::string& text, const OrderedJson& value, std::size_t indent) {
  const bool is_open = !value.empty() && (value.is_object() || (value.is_array() && value.front().is_structured()));
  if (!is_open) {
    text += one_line(value);
    return;
  }
  const char* separator = "\n";
  text += value.is_object() ? '{' : '[';
  for (const auto& [key, member] : value.items()) {
    text += separator + std::string(indent + 2, ' ');
    if (value.is_object()) text += one_line(key) + ": ";
    append_json(text, member, indent + 2);
    separator = ",\n";
  }
  text += "\n" + std::string(indent, ' ') + (value.is_object() ? '}' : ']');
}

}  // namespace

OutputDirectory::OutputDirectory(fs::path path, const OutputRules& rules) : path_(std::move(path)), rules_(rules) {
  if (auto finished = finished_start(path_, rules)) {
    start_ = std::move(*finished);
    return;
  }
  make_directory(path_);
  lock_.emplace(path_);
  // A predecessor may have saved or finished while this process waited for its lock.
  start_ = decide_start(path_, rules);
  if (start_.finished) lock_.reset();
}

std::optional<std::string> OutputDirectory::results() const {
  const fs::path file = path_ / "results.json";
  if (!fs::exists(file)) return std::nullopt;
  return read_text(file);
}

void OutputDirectory::check_space(std::size_t bytes) const {
  std::error_code unknown;
  const fs::space_info space = fs::space(path_, unknown);
  if (!unknown && space.available < bytes) {
    refuse_output(path_, fmt::format("{} are needed, but {} are free there; make room or choose another directory",
                                     bytes_text(bytes), bytes_text(space.available)));
  }
  // A quota shows only when the space is taken.
  try {
    take_and_give_back(path_ / probe_name, bytes);
  } catch (const std::runtime_error& error) {
    refuse_output(path_,
                  fmt::format("{} are needed, but cannot be allocated there: {}", bytes_text(bytes), error.what()));
  }
}

void OutputDirectory::begin(OrderedJson run) {
  require(!finished(), "OutputDirectory::begin: a finished run is there");
  require(run.is_object(), "OutputDirectory::begin: run is not a JSON object");
  lock_->sign();  // not earlier: without locks, a command that is refused would take the directory from a run
  run_ = std::move(run);
  run_[state_key] = {{"finished", false},
                     {slurm_job_key, rules_.job.empty() ? OrderedJson() : OrderedJson(rules_.job)}};
  if (!rules_.pbs_job.empty()) run_[state_key][pbs_job_key] = rules_.pbs_job;
  if (start_.goes_on) {
    remove_all_abandoned(path_);
    remove_all_abandoned(path_ / evaluations_name);
  } else {
    clear();
  }
  write_run();
}

/// Writes run.json first, so that a process killed here leaves no orphaned files, and no checkpoints of an earlier run
/// that look like this one's: the next start continues the removal.
void OutputDirectory::clear() {
  run_[state_key][clearing_key] = true;
  write_run();
  for (const std::string& name : names_in(path_)) {
    if (name == run_file_name || name == DirectoryLock::file_name || !is_run_file(name)) continue;
    std::error_code code;
    fs::remove_all(path_ / name, code);
    if (code) refuse_output(path_, fmt::format("cannot remove {}: {}", name, code.message()));
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
  if (const std::string loss = lock_->loss(); !loss.empty()) fail(loss);
  std::string text;
  append_json(text, run_, 0);
  write_text(path_ / run_file_name, text + "\n");
}

}  // namespace mylos::train
