#include "tasks/interface/task_kind.hpp"

#include "core/base/usage_error.hpp"
#include "nn/model.hpp"
#include "tasks/interface/task.hpp"
#include "tasks/interface/trained_model.hpp"

#include <fmt/format.h>

namespace mylos::tasks {

std::string TextTokenizer::decode(std::span<const std::int32_t>) const {
  throw UsageError("--decode: the tokenizer of this model does not turn ids into text; leave it out");
}

std::unique_ptr<Task> TaskKind::make_without_data(const RunConfig& run, const Notice& notice) const {
  return make(run, notice);
}

std::unique_ptr<nn::Model> TaskKind::trained_network(const TrainedModel& trained) const {
  return network(trained.model.string(), Precision::float32);
}

void TaskKind::prepare(const RunConfig&, const std::filesystem::path&, const std::filesystem::path&,
                       const Notice&) const {
  throw UsageError(
      fmt::format("prepare: {} has nothing to prepare; train and eval read its data as they are", title()));
}

std::unique_ptr<TextTokenizer> TaskKind::tokenizer(const std::filesystem::path& directory) const {
  throw UsageError(fmt::format("{}: models for {} have no tokenizer", directory.string(), title()));
}

std::vector<std::pair<std::string, std::string>> TaskKind::facts(const nlohmann::json&) const { return {}; }

}  // namespace mylos::tasks
