#include "train/monitor/run_record.hpp"

#include "core/base/error.hpp"
#include "core/base/files/json.hpp"
#include "core/base/setting_error.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "train/monitor/output_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t most_metrics = 64;                  // per task; additional ones in a file are ignored
constexpr std::size_t most_steps = std::size_t{1} << 53;  // every step number is exact as a double

double age_of(const fs::path& file) {
  std::error_code none;
  const fs::file_time_type time = fs::last_write_time(file, none);
  if (none) return -1.0;
  return std::max(0.0, std::chrono::duration<double>(fs::file_time_type::clock::now() - time).count());
}

/// Returns a member of `value`, or null if it is missing or `value` is not an object.
const json& member_or_null(const json& value, const char* name) {
  static const json none;
  const auto found = value.find(name);  // end() if `value` is not an object
  return found == value.end() ? none : *found;
}

/// Returns the list that a row belongs to; null if its kind is unknown to this version.
std::vector<json>* list_of(const json& row, RunRecord& record) {
  if (is_step_row(row)) return &record.steps;
  if (is_checkpoint_row(row)) return &record.checkpoints;
  return is_evaluation_row(row) ? &record.evaluations : nullptr;
}

/// Returns the finite numbers among those of the last steps.
std::vector<double> recent_numbers(const RunRecord& run, const char* name) {
  const std::size_t count = run.steps.size(), first = count - std::min(count, RunRecord::recent_steps);
  std::vector<double> numbers;
  for (std::size_t i = first; i < count; ++i) {
    if (const double each = number_of(run.steps[i], name); std::isfinite(each)) numbers.push_back(each);
  }
  return numbers;
}

/// Reads run.json. Errors: std::runtime_error if it is missing or invalid.
json read_description_of(const fs::path& directory) {
  const fs::path file = directory / "run.json";
  std::error_code none;
  ensure(fs::is_regular_file(file, none), fmt::format("{}: contains no run.json; give the {} directory of a run",
                                                      directory.string(), setting("output")));
  json run = read_json(file);
  ensure(run.is_object(), fmt::format("{}: not a run's", file.string()));
  return run;
}

void note_checkpoint(RunRecord& record) {
  const auto checkpoints = parallel::list_checkpoints(parallel::checkpoints_directory(record.directory));
  record.checkpoint.clear();
  if (checkpoints.empty()) return;
  const fs::path& latest = checkpoints.back().file;
  record.checkpoint = latest.filename().string();
  std::error_code none;
  const std::uintmax_t bytes = fs::file_size(latest, none);
  record.checkpoint_bytes = none ? 0 : static_cast<std::size_t>(bytes);
  record.checkpoint_age = std::max(0.0, age_of(latest));
}

}  // namespace

nlohmann::ordered_json to_json(std::span<const MetricKind> kinds) {
  auto list = nlohmann::ordered_json::array();
  for (const MetricKind& kind : kinds) {
    list.push_back(
        {{"name", kind.name}, {"title", kind.title}, {"unit", kind.unit}, {"larger_is_better", kind.larger_is_better}});
  }
  return list;
}

std::vector<MetricKind> metric_kinds_of(const json& run) {
  const auto text_of = [](const json& kind, const char* name) {
    const json& value = member_or_null(kind, name);
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  std::vector<MetricKind> kinds;
  const json& resolved = member_or_null(run, "resolved");
  const json& listed = member_or_null(resolved, metrics_key);
  for (std::size_t i = 0; listed.is_array() && i < std::min(listed.size(), most_metrics); ++i) {
    const std::string name = text_of(listed[i], "name");
    if (name.empty()) continue;
    kinds.push_back({name, text_of(listed[i], "title"), text_of(listed[i], "unit"),
                     member_or_null(listed[i], "larger_is_better") != false});
  }
  if (!kinds.empty() || !member_or_null(resolved, work_key).is_null()) return kinds;
  return {{"validation_loss", "Validation loss", "", false}, {"exact", "Exact match", "%"}, {"f1", "F1", "%"}};
}

std::string work_of(const json& run) {
  const json& counted = member_or_null(member_or_null(run, "resolved"), work_key);
  const std::string name = counted.is_string() ? counted.get<std::string>() : std::string();
  const auto is_part_of_key = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && std::ranges::all_of(name, is_part_of_key) ? name : WorkKind().name;
}

std::vector<MetricKind> RunRecord::score_kinds() const {
  std::vector<MetricKind> kinds = metric_kinds();
  std::erase_if(kinds, [](const MetricKind& kind) { return kind.name.starts_with(training_prefix); });
  return kinds;
}

std::size_t RunRecord::planned_steps() const {
  const json& planned = member_or_null(member_or_null(run, "resolved"), "steps");
  return planned.is_number_unsigned() ? planned.get<std::size_t>() : 0;
}

std::size_t RunRecord::done_steps() const { return steps.empty() ? 0 : steps.back()["step"].get<std::size_t>(); }

std::size_t RunRecord::steps_per_epoch() const {
  const json& epochs = member_or_null(member_or_null(run, "resolved"), "epochs");
  const double steps = static_cast<double>(planned_steps()) / (epochs.is_number() ? epochs.get<double>() : 0.0);
  return steps >= 0.5 && steps < static_cast<double>(most_steps) ? static_cast<std::size_t>(std::round(steps)) : 0;
}

double RunRecord::seconds_left() const {
  std::vector<double> seconds = recent_numbers(*this, "seconds");
  if (seconds.empty() || planned_steps() == 0) return -1.0;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return *middle * static_cast<double>(planned_steps() - std::min(planned_steps(), done_steps()));
}

double RunRecord::recent_loss() const {
  const std::vector<double> losses = recent_numbers(*this, "loss");
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

bool RunRecord::is_quiet() const {
  constexpr double least = 60.0, needed = 10.0;
  const double pace = steps.empty() ? 0.0 : number_of(steps.back(), "seconds");
  return !has_ended() && age > std::fmax(least, needed * pace);
}

std::optional<std::size_t> RunRecord::best_step() const {
  std::optional<std::size_t> step;
  for (const nlohmann::json& row : evaluations) {
    const auto best = row.find("best");
    if (best != row.end() && best->is_boolean() && best->get<bool>()) step = row["step"].get<std::size_t>();
  }
  return step;
}

RunFollower::RunFollower(fs::path directory, std::size_t kept)
    : record_{.directory = std::move(directory)},
      metrics_(record_.directory / "metrics.jsonl"),
      kept_(std::max(kept, RunRecord::recent_steps)) {}

void RunFollower::read_description() {
  record_.problem.clear();
  try {
    record_.run = read_description_of(record_.directory);
  } catch (const std::runtime_error& error) {
    record_.problem = error.what();
    record_.run = json::object();
  }
  const json state = record_.run.value(OutputDirectory::state_key, json());
  record_.finished = state.is_object() && state.value("finished", json()) == true;
  const json ended = state.is_object() && !record_.finished ? state.value("ended", json()) : json();
  record_.ended = ended.is_string() ? ended.get<std::string>() : std::string();
}

void RunFollower::take(json&& row) {
  const std::size_t planned = record_.planned_steps();
  if (row["step"].get<std::size_t>() > (planned > 0 ? planned : most_steps)) {
    ++foreign_;
    return;
  }
  std::vector<json>* const rows = list_of(row, record_);
  if (rows == nullptr) return;
  rows->push_back(std::move(row));
  if (rows->size() >= 2 * kept_) rows->erase(rows->begin(), rows->end() - static_cast<std::ptrdiff_t>(kept_));
}

void RunFollower::read_metrics() {
  if (metrics_.begins_anew()) {
    for (auto* rows : {&record_.steps, &record_.evaluations, &record_.checkpoints}) rows->clear();
    foreign_ = 0;
  }
  record_.has_metrics = metrics_.exists();
  metrics_.read([this](json&& row) { take(std::move(row)); });
  record_.unreadable = metrics_.unreadable() + foreign_;
}

const RunRecord& RunFollower::update() {
  // Reads the metrics last: if run.json says that the run has finished, they are complete.
  read_description();
  read_metrics();
  const double run_age = age_of(record_.directory / "run.json"), metrics_age = age_of(metrics_.file());
  record_.age = metrics_age < 0.0 ? std::max(0.0, run_age)
                : run_age < 0.0   ? metrics_age
                                  : std::min(run_age, metrics_age);
  note_checkpoint(record_);
  return record_;
}

RunRecord read_run(const fs::path& directory) {
  RunFollower follower(directory);
  const RunRecord& record = follower.update();
  ensure(record.problem.empty(), record.problem);
  return record;
}

}  // namespace mylos::train
