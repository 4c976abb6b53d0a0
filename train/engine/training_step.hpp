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

/// One step of training: this rank's share of the global batch in micro-batches, gradients, clipping, update.
namespace mylos::train {

struct StepResult {
  double loss = 0.0;           ///< sum of losses over the global batch, divided once by its weight
  double gradient_norm = 0.0;  ///< before clipping
  std::size_t sequences = 0;   ///< of the global batch
  std::size_t tokens = 0;
  StepParts parts = {};
};

/// Which step it is, and where the run is with it.
struct StepProgress {
  std::size_t step = 0;    ///< from 0: chooses the batch and the dropout
  std::size_t update = 0;  ///< updates that were made before: the same number where no step was skipped
  double learning_rate = 0.0;
  double loss_scale = 1.0;  ///< a power of two that the backward pass begins with
};

/// What a step works with; all outlive it.
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

/// How a step is computed, the same on every rank.
struct StepSettings {
  std::size_t steps = 0;          ///< of the run: beyond them no batch is made
  std::size_t largest_batch = 0;  ///< the most samples a global batch has
  BatchShape micro_batch = {};    ///< the largest, where it is known: memory is taken for it at once
  MicroBatchLimit limit = {};
  StepSplit split = {};
  double clip = 1.0;
  std::uint64_t seed = 42;
};

class TrainingStep {
 public:
  TrainingStep(const StepContext& context, const StepSettings& settings);

  /// Runs a step, and makes the next one's first micro-batch while the update runs. Nothing is updated where the loss
  /// or the gradient is not finite: the result then says so and the parameters are those of the step before. Returns
  /// when all that was launched has ended. Collective; every rank has the same result but for its parts; the loss has
  /// the same bits for any number of ranks that compute the same losses of samples.
  StepResult run(const ExecutionSpace& space, const StepProgress& progress);

 private:
  /// The global batch of a step.
  struct GlobalBatch {
    std::size_t step = 0;
    std::vector<std::size_t> samples;
    StepAssignment shares;
    double weight = 0.0;

    std::span<const Positions> of_rank(std::size_t rank) const { return shares.ranks[rank]; }
  };

  GlobalBatch choose_samples(std::size_t step) const;
  GlobalBatch begin_batch(std::size_t step);
  void read_ahead(std::size_t step) const;
  GlobalBatch take_batch(std::size_t step, StepParts& parts);
  void accumulate(const ExecutionSpace& space, const StepProgress& progress, const GlobalBatch& batch,
                  StepParts& parts);
  void assemble(const GlobalBatch& batch, const Positions& positions);
  void reduce(const ExecutionSpace& space, const GlobalBatch& batch, double loss_scale, StepResult& result);
  void update(const ExecutionSpace& space, const StepProgress& progress, const GlobalBatch& batch, double norm);
  void update_state(const ExecutionSpace& space, const GlobalBatch& batch);
  double sum_losses(const ExecutionSpace& space, const GlobalBatch& batch);

  StepContext context_;
  StepSettings settings_;
  nn::GradientNorm norm_;
  ObservedState observed_;
  Batch batch_;
  std::optional<GlobalBatch> begun_;  ///< the next step's, whose first micro-batch batch_ holds
  std::vector<std::size_t> samples_;  ///< of the micro-batch that is being made,
  std::vector<std::uint32_t> ids_;    ///< and their places in the global batch
  /// (largest batch + 1) of this rank's samples in the order it computes them; the last is a dummy's.
  Vector<float> losses_;
  HostVector<float> host_losses_;
  std::vector<double> losses_by_position_;
};

/// True where loss and gradient norm are finite.
bool is_finite(const StepResult& result);

}  // namespace mylos::train
