#include "train/training_step.hpp"

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mylos::train {

TrainingStep::TrainingStep(const StepContext& context, std::size_t largest_batch, const MicroBatchLimit& limit,
                           double clip, std::uint64_t seed)
    : context_(context),
      limit_(limit),
      clip_(clip),
      seed_(seed),
      norm_(context.store.table(), context.mode.slices()),
      ids_(largest_batch),
      losses_("mylos::TrainingStep::losses", largest_batch),
      host_losses_("mylos::TrainingStep::host_losses", largest_batch) {
  std::iota(ids_.begin(), ids_.end(), 0u);
}

StepResult TrainingStep::run(const ExecutionSpace& space, std::size_t step, double learning_rate) {
  StepResult result;
  const std::vector<std::size_t> samples = choose_samples(step, result);
  const double weight = context_.task.weight(samples);
  accumulate(space, step, samples, weight);
  reduce(space, samples.size(), weight, result);
  if (is_finite(result)) update(space, step, learning_rate, result.gradient_norm);
  return result;
}

// Regions name the host's work to Kokkos Tools; those of a step follow one another without gaps.

std::vector<std::size_t> TrainingStep::choose_samples(std::size_t step, StepResult& result) const {
  const Kokkos::Profiling::ScopedRegion region("mylos::TrainingStep::choose_samples");
  std::vector<std::size_t> samples = context_.task.global_batch(step);
  result.sequences = samples.size();
  for (const std::size_t sample : samples) result.tokens += context_.task.rows_of(sample);
  return samples;
}

void TrainingStep::reduce(const ExecutionSpace& space, std::size_t samples, double weight, StepResult& result) {
  const Kokkos::Profiling::ScopedRegion region("mylos::TrainingStep::reduce");
  context_.mode.finish_gradients(space);
  result.loss = sum_losses(space, samples) / weight;
  result.gradient_norm = std::sqrt(context_.mode.sum_of_blocks(norm_.block_sums(space)));
}

void TrainingStep::update(const ExecutionSpace& space, std::size_t step, double learning_rate, double norm) {
  const Kokkos::Profiling::ScopedRegion region("mylos::TrainingStep::update");
  // The constant is that of PyTorch's clip_grad_norm_.
  const double scale = clip_ > 0.0 ? std::min(1.0, clip_ / (norm + 1e-6)) : 1.0;
  context_.optimizer.update(
      space,
      {.step = step, .learning_rate = static_cast<float>(learning_rate), .gradient_scale = static_cast<float>(scale)});
  context_.mode.publish_values(space);
}

void TrainingStep::accumulate(const ExecutionSpace& space, std::size_t step, std::span<const std::size_t> samples,
                              double weight) {
  const nn::Pass pass{space,          context_.gemm, context_.store, context_.mode.schedule(),
                      context_.arena, seed_,         step,           context_.recompute};
  const float scale = static_cast<float>(1.0 / weight);
  const Kokkos::Profiling::ScopedRegion region("mylos::TrainingStep::pass");
  context_.mode.begin_step(space);
  for (std::size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    end = micro_batch_end(context_.task, samples, begin, limit_);
    assemble(samples, begin, end - begin);
    context_.mode.begin_micro_batch(end == samples.size());
    context_.task.model().train(pass, batch_, scale, slice(losses_, begin, end));
  }
}

void TrainingStep::assemble(std::span<const std::size_t> samples, std::size_t begin, std::size_t count) {
  const Kokkos::Profiling::ScopedRegion region("mylos::TrainingStep::assemble");
  context_.task.assemble(samples.subspan(begin, count), std::span(ids_).subspan(begin, count), batch_);
}

double TrainingStep::sum_losses(const ExecutionSpace& space, std::size_t samples) {
  Kokkos::deep_copy(space, host_losses_, losses_);
  space.fence("mylos::TrainingStep::losses");
  return std::accumulate(host_losses_.data(), host_losses_.data() + samples, 0.0);
}

bool is_finite(const StepResult& result) { return std::isfinite(result.loss) && std::isfinite(result.gradient_norm); }

}  // namespace mylos::train
