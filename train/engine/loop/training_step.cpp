#include "train/engine/loop/training_step.hpp"

#include "core/base/error.hpp"
#include "core/kernels/team.hpp"
#include "core/work.hpp"
#include "train/engine/loop/loss_scale.hpp"

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace mylos::train {
namespace {

/// Writes losses and hits of a micro-batch to the positions of its samples in the global batch.
void put_in_batch_order(const ExecutionSpace& space, const ConstVector<float>& losses, const ConstVector<float>& hits,
                        const ConstVector<std::uint32_t>& positions, const Vector<double>& ordered) {
  const std::size_t first_hit = ordered.size() / 2;
  for_each_element(
      with_work("mylos::TrainingStep::put_in_batch_order", work_of(losses.size(), 0, 28)), space, losses.size(),
      KOKKOS_LAMBDA(std::size_t i) {
        ordered(positions(i)) = losses(i);
        ordered(first_hit + positions(i)) = hits(i);
      });
}

}  // namespace

TrainingStep::TrainingStep(const StepContext& context, const StepSettings& settings)
    : context_(context),
      settings_(settings),
      norm_(context.store.table(), context.strategy.slices()),
      observed_(context.store, context.ranks),
      batch_(settings.micro_batch),
      losses_("mylos::TrainingStep::losses", settings.largest_batch + 1),
      hits_("mylos::TrainingStep::hits", settings.largest_batch + 1),
      by_position_("mylos::TrainingStep::by_position", 2 * (settings.largest_batch + 1)),
      squares_("mylos::TrainingStep::squares", 1),
      loss_scale_("mylos::TrainingStep::loss_scale", 1),
      control_("mylos::TrainingStep::control", 1) {
  for (Results& results : results_) {
    results.losses = PinnedVector<double>("mylos::TrainingStep::host_losses", by_position_.size());
    results.squares = PinnedVector<double>("mylos::TrainingStep::host_squares", 1);
  }
}

void TrainingStep::launch(const ExecutionSpace& space, const StepProgress& progress) {
  require(outstanding() < 2, "training step: the results of two steps are outstanding");
  Results& results = results_[launched_ % 2];
  StepResult& result = results.result;
  result = {};
  const SyncSeconds synced = std::exchange(synced_, {});
  if (outstanding() == 0) {
    since_end_ = {};
    result.seconds = synced.update + synced.exchange;
  }
  const double waited_before = parallel::waited_seconds();
  const GlobalBatch batch = take_batch(progress.step, result.parts);
  result.sequences = batch.samples.size();
  for (const std::size_t sample : batch.samples) result.tokens += context_.task.rows_of(sample);
  results.weight = batch.weight;
  accumulate(space, progress, batch, result.parts);
  // A device runs the backward pass meanwhile, and ranks exchange its gradients.
  const Stopwatch making;
  if (progress.step + 1 < settings_.steps) begun_ = begin_batch(progress.step + 1);
  if constexpr (runs_on_host) result.parts.data += making.seconds();
  reduce(space, batch, results);
  const double waited = parallel::waited_seconds();
  const Stopwatch updating;
  update(space, progress, batch);
  if constexpr (runs_on_host) {
    result.parts.update = synced.update + updating.seconds() - (parallel::waited_seconds() - waited);
    result.parts.exchange = synced.exchange + parallel::waited_seconds() - waited_before;
    end_seconds(result);
  }
  ++launched_;
}

void TrainingStep::wait(const std::function<void()>& wait_for_ranks) {
  require(outstanding() > 0, "training step: no results are outstanding");
  const Kokkos::Profiling::ScopedRegion waiting("mylos::TrainingStep::wait");
  if (awaited_ == taken_) {
    Results& results = results_[awaited_++ % 2];
    results.copied.wait();
    context_.ranks.expect_no_failure();
    // On a host, the step ended when it was launched; the time since then belongs to the next step if there is one.
    if (!runs_on_host || outstanding() == 1) end_seconds(results.result);
  }
  wait_for_ranks();
}

/// Losses are summed in batch order.
StepResult TrainingStep::take(double loss_scale) {
  if (awaited_ == taken_) wait();
  Results& results = results_[taken_++ % 2];
  StepResult& result = results.result;
  const double* const losses = results.losses.data();
  const double* const hits = losses + results.losses.size() / 2;
  result.loss = std::accumulate(losses, losses + result.sequences, 0.0) / results.weight;
  result.hits = static_cast<std::size_t>(std::accumulate(hits, hits + result.sequences, 0.0));
  result.gradient_norm = std::sqrt(results.squares(0)) / loss_scale;
  return result;
}

/// Counts the time since the end of the previous step.
void TrainingStep::end_seconds(StepResult& result) { result.seconds += std::exchange(since_end_, {}).seconds(); }

void TrainingStep::sync_parameters(const ExecutionSpace& space) {
  const double waited = parallel::waited_seconds();
  const Stopwatch syncing;
  {
    const Kokkos::Profiling::ScopedRegion region("mylos::TrainingStep::sync_parameters");
    context_.strategy.sync_parameters(space, ChangedUnits::trained);
  }
  synced_.exchange = parallel::waited_seconds() - waited;
  synced_.update = syncing.seconds() - synced_.exchange;
}

// Regions name the host's work in Kokkos Tools; those of a step follow one another without gaps.

TrainingStep::GlobalBatch TrainingStep::choose_samples(std::size_t step) const {
  const Kokkos::Profiling::ScopedRegion region("mylos::TrainingStep::choose_samples");
  GlobalBatch batch{.step = step, .samples = {}, .assignment = {}};
  batch.samples = context_.task.global_batch(step);
  batch.assignment = assign_step(context_.task, batch.samples, settings_.limit, settings_.split);
  batch.weight = context_.task.weight(batch.samples);
  return batch;
}

/// Starts a global batch and makes this rank's first micro-batch.
TrainingStep::GlobalBatch TrainingStep::begin_batch(std::size_t step) {
  GlobalBatch batch = choose_samples(step);
  const std::span<const Positions> own = batch.of_rank(context_.ranks.rank());
  if (!own.empty()) assemble(batch, own.front());
  return batch;
}

/// Returns the batch that the previous step started, or starts one now if there is none.
TrainingStep::GlobalBatch TrainingStep::take_batch(std::size_t step, StepParts& parts) {
  if (auto begun = std::exchange(begun_, std::nullopt); begun && begun->step == step) return std::move(*begun);
  const Stopwatch making;
  read_ahead(step);
  GlobalBatch batch = begin_batch(step);
  parts.data = making.seconds();
  return batch;
}

/// Announces to the task which samples this rank will assemble from `step` on. The task may keep the function longer
/// than this object lives, so it captures only the task and values.
void TrainingStep::read_ahead(std::size_t step) const {
  const SampleStream& stream = context_.task;
  const auto batches_of = [&stream, limit = settings_.limit, split = settings_.split,
                           rank = context_.ranks.rank()](std::size_t number) {
    const std::vector<std::size_t> samples = stream.global_batch(number);
    const StepAssignment assignment = assign_step(stream, samples, limit, split);
    std::vector<std::vector<std::size_t>> batches;
    for (const Positions& positions : assignment.ranks[rank]) {
      std::vector<std::size_t>& batch = batches.emplace_back();
      for (const std::size_t position : positions) batch.push_back(samples[position]);
      if (positions.empty()) batch.push_back(samples[assignment.shortest]);
    }
    return batches;
  };
  context_.task.read_ahead({.first_step = step, .steps = settings_.steps, .batches_of = batches_of});
}

void TrainingStep::accumulate(const ExecutionSpace& space, const StepProgress& progress, const GlobalBatch& batch,
                              StepParts& parts) {
  BoundedHooks hooks(context_.strategy.hooks(), space, launch_bound_);
  nn::Pass pass{space,          context_.gemm,  context_.store, hooks,
                context_.arena, settings_.seed, progress.step,  context_.recompute};
  const auto scale = static_cast<float>(1.0 / batch.weight);
  const std::span<const Positions> own = batch.of_rank(context_.ranks.rank());
  const Kokkos::Profiling::ScopedRegion region("mylos::TrainingStep::pass");
  const auto as_float = [](double value) { return static_cast<float>(value); };
  select_loss_scale(space, progress.loss_scale.map(as_float), control_, loss_scale_);
  pass.loss_scale = loss_scale_;
  context_.strategy.begin_step(space);
  std::size_t computed = 0, own_samples = 0;
  for (const Positions& positions : own) own_samples += positions.size();
  observed_.begin_step(own_samples);
  Kokkos::deep_copy(space, by_position_, 0.0);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Positions& positions = own[i];
    const Stopwatch making;
    if (i > 0) assemble(batch, positions);
    if constexpr (runs_on_host) parts.data += making.seconds();
    context_.strategy.begin_micro_batch(i + 1 == own.size());
    const bool dummy = positions.empty();
    const std::size_t first = dummy ? settings_.largest_batch : computed;
    pass.observed = observed_.rows(dummy ? own_samples : computed, batch_.shape().samples);
    const Vector<float> losses = slice(losses_, first, first + batch_.shape().samples);
    pass.hits = slice(hits_, first, first + batch_.shape().samples);
    context_.task.model().train(pass, batch_, dummy ? 0.0f : scale, losses);
    put_in_batch_order(space, losses, pass.hits, batch_.sample_ids(), by_position_);
    computed += positions.size();
  }
}

/// Makes a micro-batch. Without positions it is a dummy: the shortest sample, under an id outside the batch, so that
/// nothing counts it as one of the batch.
void TrainingStep::assemble(const GlobalBatch& batch, const Positions& positions) {
  const Kokkos::Profiling::ScopedRegion region("mylos::TrainingStep::assemble");
  samples_.clear();
  ids_.clear();
  for (const std::size_t position : positions) {
    samples_.push_back(batch.samples[position]);
    ids_.push_back(static_cast<std::uint32_t>(position));
  }
  if (positions.empty()) {
    samples_.push_back(batch.samples[batch.assignment.shortest]);
    ids_.push_back(static_cast<std::uint32_t>(batch.samples.size()));
  }
  context_.task.assemble(batch.step, samples_, ids_, batch_);
}

/// Sums gradients, losses and the norm over the ranks, decides on the update, and copies the results to the host; all
/// of it on the device. Each loss is added to zeros, so the bits do not depend on which rank computed it.
void TrainingStep::reduce(const ExecutionSpace& space, const GlobalBatch& batch, Results& results) {
  const Kokkos::Profiling::ScopedRegion region("mylos::TrainingStep::reduce");
  const Vector<double> losses = slice(by_position_, 0, batch.samples.size());
  context_.strategy.finish_gradients();
  context_.strategy.join_values(space, losses, "losses");
  context_.strategy.sum_of_blocks(space, norm_.block_sums(space), squares_);
  const DecisionSettings settings{.clip = settings_.clip, .weight = batch.weight, .least_loss_scale = LossScale::least};
  decide_update(space, settings, loss_scale_, squares_, losses, control_);
  Kokkos::deep_copy(space, results.losses, by_position_);
  Kokkos::deep_copy(space, results.squares, squares_);
  results.copied.set(space);
}

/// State comes first, so that the exchanges of its observations do not wait for the optimizer.
void TrainingStep::update(const ExecutionSpace& space, const StepProgress& progress, const GlobalBatch& batch) {
  const Kokkos::Profiling::ScopedRegion region("mylos::TrainingStep::update");
  update_state(space, batch);
  context_.optimizer.update(space, progress.update, control_);
}

void TrainingStep::update_state(const ExecutionSpace& space, const GlobalBatch& batch) {
  if (context_.store.table().observed_size() == 0) return;
  std::vector<double> rows;
  for (const std::size_t sample : batch.samples) rows.push_back(static_cast<double>(context_.task.rows_of(sample)));
  std::vector<std::size_t> computed;
  for (const Positions& positions : batch.of_rank(context_.ranks.rank())) {
    computed.insert(computed.end(), positions.begin(), positions.end());
  }
  observed_.update(space, rows, computed, control_);
}

bool is_finite(const StepResult& result) { return std::isfinite(result.loss) && std::isfinite(result.gradient_norm); }

}  // namespace mylos::train
