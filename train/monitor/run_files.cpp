#include "train/monitor/run_files.hpp"

#include "core/base/files/directory_lock.hpp"
#include "core/base/files/files.hpp"
#include "core/base/setting_error.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "train/engine/evaluation_files.hpp"
#include "train/engine/models/kept_models.hpp"
#include "train/monitor/gpu_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

namespace mylos::train {
namespace {

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
