#include "tasks/interface/task_kind.hpp"

#include "core/base/usage_error.hpp"
#include "families/model_families.hpp"
#include "nn/model.hpp"
#include "tasks/interface/task.hpp"
#include "tasks/interface/trained_model.hpp"

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
  return trains_from_sizes() && knows_model(name) && std::ranges::count(known_models(), name) > 0;
}

std::unique_ptr<nn::Model> TaskKind::trained_network(const TrainedModel& trained) const {
  return network(trained.model.string(), Precision::float32);
}

void TaskKind::prepare(const RunConfig&, const std::filesystem::path&, const std::filesystem::path&,
                       const Notice&) const {
  throw UsageError(
      fmt::format("prepare: {} has nothing to prepare; train and eval read its data as they are", title()));
}

std::vector<std::string> TaskKind::texts(const std::filesystem::path& data) const {
  throw UsageError(fmt::format("--data {}: {} has no texts to tokenize", data.string(), title()));
}

std::vector<std::pair<std::string, std::string>> TaskKind::facts(const nlohmann::json&) const { return {}; }

std::unique_ptr<Task> make_with_data(const TaskKind& kind, const RunConfig& run, const Notice& notice) {
  std::unique_ptr<Task> task = kind.make(run, notice);
  task->read_data();
  return task;
}

}  // namespace mylos::tasks
