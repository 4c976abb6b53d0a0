#pragma once

#include "core/arena.hpp"
#include "core/base/stopwatch.hpp"
#include "core/batch.hpp"
#include "core/launch_bound.hpp"
#include "nn/learning_rate.hpp"
#include "nn/optimizer.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/observed_state.hpp"
#include "train/engine/report.hpp"
#include "train/engine/samples/step_assignment.hpp"
#include "train/engine/task.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

/// One training step: micro-batches of this rank's part of the global batch, gradients, clipping and update.
namespace mylos::train {

struct StepResult {
  double loss = 0.0;           ///< sum of losses over the global batch, divided by its weight
  double gradient_norm = 0.0;  ///< before clipping
  std::size_t sequences = 0;   ///< samples of the global batch
  std::size_t tokens = 0;
  std::size_t hits = 0;  ///< labels of this rank's samples that the model predicts, if the task counts them
  /// Seconds from the end of the previous step to the end of this one. If the results of the previous step were taken
  /// before, from the launch, and the synchronisation of parameters before it.
  double seconds = 0.0;
  StepParts parts = {};
};

/// The position of a step in the run, with candidates for what depends on the step before.
struct StepProgress {
  std::size_t step = 0;  ///< from 0: selects the batch and the dropout
  Candidates<nn::UpdateSettings> update = {};
  Candidates<double> loss_scale = 1.0;  ///< a power of two by which the backward pass is scaled
};

/// The objects that a step works with. All must outlive it.
struct StepContext {
  Task& task;
  ParameterStore& store;
  parallel::ShardingStrategy& strategy;
  nn::Optimizer& optimizer;
  const Gemm& gemm;
  Arena& arena;
  parallel::Communicator& ranks;
  nn::Recompute recompute = nn::Recompute::none;
};

/// Settings of the steps, the same on every rank.
struct StepSettings {
  std::size_t steps = 0;          ///< total steps of the run; no batch is made beyond them
  std::size_t largest_batch = 0;  ///< most samples of a global batch
  BatchShape micro_batch = {};    ///< largest micro-batch, if known: its memory is allocated at once
  MicroBatchLimit limit = {};
  StepSplit split = {};
  double clip = 1.0;
  std::uint64_t seed = 42;
};

/// Launches steps, and returns their results later: a step may be launched before the results of the previous one are
/// taken, so that a device does not wait for the host.
class TrainingStep {
 public:
  TrainingStep(const StepContext& context, const StepSettings& settings);

  /// Launches a step, and makes the first micro-batch of the next one while the backward pass runs. The results of at
  /// most one earlier step may be outstanding. The device decides on the update: if the loss or the gradient is not
  /// finite, parameters and state tensors are unchanged, and if a smaller loss scale cannot help, all later steps leave
  /// them unchanged, too. Collective. Call sync_parameters afterwards, before using the model.
  void launch(const ExecutionSpace& space, const StepProgress& progress);
  /// Returns the number of launched steps whose results are not taken: 0, 1 or 2.
  std::size_t outstanding() const { return launched_ - taken_; }
  /// Waits for the results of the oldest outstanding step, and not for its update. Then calls `wait_for_ranks`, which
  /// may wait for exchanges between hosts: the host waits in one place for all that it needs.
  void wait(const std::function<void()>& wait_for_ranks = [] {});
  /// Returns the results of the oldest outstanding step. Waits for them unless wait() did. `loss_scale` is the one that
  /// the device selected. All ranks get the same result except for its hits, seconds and parts. The loss has the same
  /// bits for any number of ranks if the losses of the samples do.
  StepResult take(double loss_scale);
  /// Updates the model's values from the updated master weights. Separate from `launch`, so that exchanges between the
  /// two calls do not queue behind the gathers of values, which the next forward pass can hide. Collective.
  void sync_parameters(const ExecutionSpace& space);

 private:
  /// The global batch of a step.
  struct GlobalBatch {
    std::size_t step = 0;
    std::vector<std::size_t> samples;
    StepAssignment assignment;
    double weight = 0.0;

    std::span<const Positions> of_rank(std::size_t rank) const { return assignment.ranks[rank]; }
  };
  /// The results of a launched step. They are in host memory after `copied`.
  struct Results {
    StepResult result = {};
    double weight = 0.0;           ///< that of the batch
    PinnedVector<double> losses;   ///< (2, largest batch + 1) as by_position_
    PinnedVector<double> squares;  ///< (1)
    LaunchMark copied;
  };
  /// Seconds of the host in the last sync_parameters, which count as parts of the next step.
  struct SyncSeconds {
    double update = 0.0, exchange = 0.0;
  };

  GlobalBatch choose_samples(std::size_t step) const;
  GlobalBatch begin_batch(std::size_t step);
  void read_ahead(std::size_t step) const;
  GlobalBatch take_batch(std::size_t step, StepParts& parts);
  void accumulate(const ExecutionSpace& space, const StepProgress& progress, const GlobalBatch& batch,
                  StepParts& parts);
  void assemble(const GlobalBatch& batch, const Positions& positions);
  void reduce(const ExecutionSpace& space, const GlobalBatch& batch, Results& results);
  void update(const ExecutionSpace& space, const StepProgress& progress, const GlobalBatch& batch);
  void update_state(const ExecutionSpace& space, const GlobalBatch& batch);
  void end_seconds(StepResult& result);

  StepContext context_;
  StepSettings settings_;
  LaunchBound<> launch_bound_;
  nn::GradientNorm norm_;
  ObservedState observed_;
  Batch batch_;
  std::optional<GlobalBatch> begun_;  ///< batch of the next step; batch_ holds its first micro-batch
  std::vector<std::size_t> samples_;  ///< samples of the micro-batch being made
  std::vector<std::uint32_t> ids_;    ///< their positions in the global batch
  /// (largest batch + 1) Losses and hits of this rank's samples in the order of computation, and one for a dummy
  /// sample.
  Vector<float> losses_, hits_;
  /// (2, largest batch + 1) Losses of all samples by their position in the global batch, and one for a dummy sample;
  /// then hits, of this rank's samples only.
  Vector<double> by_position_;
  Vector<double> squares_;         ///< (1) sum of the squares of the gradient
  Vector<float> loss_scale_;       ///< (1)
  Vector<UpdateControl> control_;  ///< (1) of the last update
  Results results_[2];             ///< steps alternate
  std::size_t launched_ = 0, awaited_ = 0, taken_ = 0;
  Stopwatch since_end_;  ///< since the end of the last step, or since the launch of this one if no results were
                         ///< outstanding then
  SyncSeconds synced_;
};

/// Returns whether loss and gradient norm are finite.
bool is_finite(const StepResult& result);

}  // namespace mylos::train
