#include "tasks/interface/task_kind.hpp"

#include "core/base/usage_error.hpp"
#include "families/model_families.hpp"
#include "tasks/interface/task.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::tasks {

std::vector<std::string> TaskKind::known_models() const {
  std::vector<std::string> names;
  for (const std::string_view type : model_types()) {
    for (const data::KnownModel& known : families::known_models(type)) names.emplace_back(known.name);
  }
  return names;
}

bool TaskKind::knows_model(std::string_view name) const {
  return std::ranges::any_of(model_types(),
                             [&](std::string_view type) { return families::find_known_model(name, type) != nullptr; });
}

bool TaskKind::trains_by_name(std::string_view name) const {
  return traits_.trains_by_name && knows_model(name) && std::ranges::count(known_models(), name) > 0;
}

std::vector<Option<RunConfig>> TaskKind::options() const {
  return traits_.options ? traits_.options() : std::vector<Option<RunConfig>>();
}

void TaskKind::prepare(const RunConfig& run, const std::filesystem::path& data, const std::filesystem::path& output,
                       const Notice& notice) const {
  if (traits_.prepare) return traits_.prepare(run, data, output, notice);
  throw UsageError(
      fmt::format("prepare: {} has nothing to prepare; train and eval read its data as they are", title()));
}

bool TaskKind::is_prepared(const std::filesystem::path& file) const {
  return traits_.is_prepared && traits_.is_prepared(file);
}

std::vector<std::string> TaskKind::texts(const std::filesystem::path& data) const {
  if (traits_.texts) return traits_.texts(data);
  throw UsageError(fmt::format("--data {}: {} has no texts to tokenize", data.string(), title()));
}

std::vector<std::pair<std::string, std::string>> TaskKind::facts(const nlohmann::json&) const { return {}; }

std::unique_ptr<Task> make_with_data(const TaskKind& kind, const RunConfig& run, const Notice& notice) {
  std::unique_ptr<Task> task = kind.make(run, notice);
  task->read_data();
  return task;
}

}  // namespace mylos::tasks
