#include "tasks/interface/task_kind.hpp"

#include "core/base/usage_error.hpp"
#include "families/model_families.hpp"
#include "tasks/interface/task.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::tasks {

std::vector<std::string_view> TaskKind::model_types() const {
  if (traits_.takes) return families::types_that_give(*traits_.takes);
  return {traits_.own_model_types.begin(), traits_.own_model_types.end()};
}

bool TaskKind::serves(std::string_view model_type) const { return std::ranges::count(model_types(), model_type) > 0; }

std::vector<std::string> TaskKind::known_models() const {
  return traits_.takes ? families::known_models(*traits_.takes) : std::vector<std::string>();
}

bool TaskKind::knows_model(std::string_view name) const {
  return traits_.takes && families::find_known_model(name, traits_.takes) != nullptr;
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

void TaskKind::merge(const RunConfig&, const std::filesystem::path&, const Notice&) const {
  throw UsageError(fmt::format("merge: models of {} take no adapters", title()));
}

std::vector<std::pair<std::string, std::string>> TaskKind::facts(const nlohmann::json&) const { return {}; }

std::unique_ptr<Task> make_with_data(const TaskKind& kind, const RunConfig& run, const Notice& notice) {
  std::unique_ptr<Task> task = kind.make(FileReader(), run, notice);
  task->read_data();
  return task;
}

}  // namespace mylos::tasks
