#include "tasks/interface/planned_run.hpp"

#include "train/engine/samples/sampler.hpp"

namespace mylos::tasks {

std::shared_ptr<const train::SampleStream> planned_samples(const PlannedRun& run) {
  if (run.samples) return run.samples;
  return std::make_shared<train::LengthStream>(run.lengths, run.config.task.batch, run.config.engine.seed, run.work);
}

}  // namespace mylos::tasks
