#include "tasks/interface/task_kind.hpp"

#include "core/base/usage_error.hpp"
#include "nn/model.hpp"
#include "tasks/interface/task.hpp"
#include "tasks/interface/trained_model.hpp"

#include <fmt/format.h>

namespace mylos::tasks {

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
