#include "tasks/interface/task_kind.hpp"

#include "core/base/usage_error.hpp"
#include "train/engine/length_stream.hpp"

#include <fmt/format.h>

namespace mylos::tasks {

std::shared_ptr<const train::SampleStream> planned_samples(const PlannedRun& run) {
  if (run.samples) return run.samples;
  return std::make_shared<train::LengthStream>(run.lengths, run.config.task.batch, run.config.engine.seed, run.work);
}

std::string TextTokenizer::decode(std::span<const std::int32_t>) const {
  throw UsageError("--decode: the tokenizer of this model does not turn ids into text; leave it out");
}

void TaskKind::prepare(const RunConfig&, const std::filesystem::path&, const std::filesystem::path&,
                       const Notice&) const {
  throw UsageError(
      fmt::format("prepare: {} has nothing to prepare; train and eval read its data as they are", title()));
}

std::unique_ptr<TextTokenizer> TaskKind::tokenizer(const std::filesystem::path& directory) const {
  throw UsageError(fmt::format("{}: models for {} have no tokenizer", directory.string(), title()));
}

}  // namespace mylos::tasks
