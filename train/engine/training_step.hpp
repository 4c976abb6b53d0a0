#pragma once

#include "core/arena.hpp"
#include "core/batch.hpp"
#include "nn/learning_rate.hpp"
#include "nn/optimizer.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/observed_state.hpp"
#include "train/engine/step_assignment.hpp"
#include "train/engine/step_parts.hpp"
#include "train/engine/task.hpp"

#include <cstdint>
#include <optional>
#include <vector>

/// One training step: micro-batches of this rank's part of the global batch, gradients, clipping and update.
namespace mylos::train {

struct StepResult {
  double loss = 0.0;           ///< sum of losses over the global batch, divided by its weight
  double gradient_norm = 0.0;  ///< before clipping
  std::size_t sequences = 0;   ///< samples of the global batch
  std::size_t tokens = 0;
  StepParts parts = {};
};

/// The position of a step in the run.
struct StepProgress {
  std::size_t step = 0;    ///< from 0: selects the batch and the dropout
  std::size_t update = 0;  ///< updates before this step; less than `step` if steps were skipped
  double learning_rate = 0.0;
  double loss_scale = 1.0;  ///< a power of two by which the backward pass is scaled
};

/// The objects that a step works with. All must outlive it.
struct StepContext {
  Task& task;
  ParameterStore& store;
  parallel::ShardingStrategy& mode;
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

class TrainingStep {
 public:
  TrainingStep(const StepContext& context, const StepSettings& settings);

  /// Runs a step, and makes the first micro-batch of the next one while the backward pass runs. The device decides on
  /// the update: if the loss or the gradient is not finite, parameters and state tensors are unchanged, and the result
  /// says so. Returns when the results are known; a device may still run the update. Collective. All ranks get the same
  /// result except for its parts. The loss has the same bits for any number of ranks if the losses of the samples do.
  /// After a step that updated the parameters, call sync_parameters before using the model.
  StepResult run(const ExecutionSpace& space, const StepProgress& progress);
  /// Updates the model's values from the updated master weights. Separate from `run`, so that exchanges between the two
  /// calls do not queue behind the gathers of values, which the next forward pass can hide. Collective.
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
  void reduce(const ExecutionSpace& space, const StepProgress& progress, const GlobalBatch& batch);
  void update(const ExecutionSpace& space, const StepProgress& progress, const GlobalBatch& batch);
  void update_state(const ExecutionSpace& space, const GlobalBatch& batch);
  void take_results(const StepProgress& progress, const GlobalBatch& batch, StepResult& result) const;

  StepContext context_;
  StepSettings settings_;
  nn::GradientNorm norm_;
  ObservedState observed_;
  Batch batch_;
  std::optional<GlobalBatch> begun_;  ///< batch of the next step; batch_ holds its first micro-batch
  std::vector<std::size_t> samples_;  ///< samples of the micro-batch being made
  std::vector<std::uint32_t> ids_;    ///< their positions in the global batch
  /// (largest batch + 1) Losses of this rank's samples in the order of computation, and one for a dummy sample.
  Vector<float> losses_;
  /// (largest batch + 1) Losses of all samples by their position in the global batch, and one for a dummy sample.
  Vector<double> losses_by_position_;
  Vector<double> squares_;         ///< (1) sum of the squares of the gradient
  Vector<UpdateControl> control_;  ///< (1)
  PinnedVector<double> host_losses_, host_squares_;
  LaunchMark results_;  ///< event after both are copied to the host
  SyncSeconds synced_;
};

/// Returns whether loss and gradient norm are finite.
bool is_finite(const StepResult& result);

}  // namespace mylos::train
