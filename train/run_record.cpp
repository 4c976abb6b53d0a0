#include "train/run_record.hpp"

#include "core/error.hpp"
#include "data/files.hpp"
#include "data/json.hpp"
#include "parallel/checkpoint_directory.hpp"
#include "train/output_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <sstream>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

double age_of(const fs::path& file) {
  std::error_code none;
  const fs::file_time_type time = fs::last_write_time(file, none);
  if (none) return -1.0;
  return std::max(0.0, std::chrono::duration<double>(fs::file_time_type::clock::now() - time).count());
}

std::vector<json>& list_of(const json& row, RunRecord& record) {
  if (row.contains("tokens")) return record.steps;
  return row.contains("checkpoint") ? record.checkpoints : record.evaluations;
}

/// Lines that are whole objects with a step.
void read_metrics(const fs::path& file, RunRecord& record) {
  std::error_code none;
  record.has_metrics = fs::exists(file, none);
  if (!record.has_metrics) return;
  std::istringstream lines(data::read_text(file));
  for (std::string line; std::getline(lines, line);) {
    json row = json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("step") || !row["step"].is_number_unsigned()) {
      ++record.unreadable;
      continue;
    }
    list_of(row, record).push_back(std::move(row));
  }
}

}  // namespace

std::size_t RunRecord::planned_steps() const {
  const auto resolved = run.find("resolved");
  if (resolved == run.end() || !resolved->is_object()) return 0;
  const auto planned = resolved->find("steps");
  return planned != resolved->end() && planned->is_number_unsigned() ? planned->get<std::size_t>() : 0;
}

std::size_t RunRecord::done_steps() const { return steps.empty() ? 0 : steps.back()["step"].get<std::size_t>(); }

double RunRecord::seconds_left() const {
  constexpr std::size_t most = 50;
  std::vector<double> seconds;
  for (std::size_t i = steps.size() - std::min(steps.size(), most); i < steps.size(); ++i) {
    seconds.push_back(steps[i].value("seconds", 0.0));
  }
  if (seconds.empty() || planned_steps() == 0) return -1.0;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return *middle * static_cast<double>(planned_steps() - std::min(planned_steps(), done_steps()));
}

double number_of(const json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

RunRecord read_run(const fs::path& directory) {
  const fs::path file = directory / "run.json";
  std::error_code none;
  ensure(fs::is_regular_file(file, none),
         fmt::format("{}: no run.json is there; name the --output directory of a run", directory.string()));
  RunRecord record{.directory = directory, .run = data::read_json(file)};
  ensure(record.run.is_object(), fmt::format("{}: not a run's", file.string()));
  const json state = record.run.value(OutputDirectory::state_key, json::object());
  record.finished = state.is_object() && state.value("finished", json(false)) == true;
  const fs::path metrics = directory / "metrics.jsonl";
  read_metrics(metrics, record);
  const double run_age = age_of(file), metrics_age = age_of(metrics);
  record.age = metrics_age < 0.0 ? run_age : std::min(run_age, metrics_age);
  const auto checkpoints = parallel::list_checkpoints(parallel::checkpoints_directory(directory));
  if (!checkpoints.empty()) {
    const fs::path& latest = checkpoints.back().file;
    record.checkpoint = latest.filename().string();
    const std::uintmax_t bytes = fs::file_size(latest, none);
    record.checkpoint_bytes = none ? 0 : static_cast<std::size_t>(bytes);
    record.checkpoint_age = std::max(0.0, age_of(latest));
  }
  return record;
}

}  // namespace mylos::train
