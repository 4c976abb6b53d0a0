#pragma once

#include "core/arena.hpp"
#include "core/batch.hpp"
#include "nn/learning_rate.hpp"
#include "nn/optimizer.hpp"
#include "parallel/parameter_mode.hpp"
#include "train/micro_batches.hpp"
#include "train/task.hpp"

/// One step of training: the global batch in micro-batches, gradients, clipping, update.
namespace mylos::train {

struct StepResult {
  double loss = 0.0;           ///< sum of losses over the global batch, divided once by its weight
  double gradient_norm = 0.0;  ///< before clipping
  std::size_t sequences = 0;
  std::size_t tokens = 0;
};

/// What a step works with; all outlive it.
struct StepContext {
  Task& task;
  ParameterStore& store;
  parallel::ParameterMode& mode;
  nn::Optimizer& optimizer;
  const Gemm& gemm;
  Arena& arena;
  nn::Recompute recompute = nn::Recompute::none;
};

class TrainingStep {
 public:
  /// `largest_batch` is the most samples a global batch has.
  TrainingStep(const StepContext& context, std::size_t largest_batch, const MicroBatchLimit& limit, double clip,
               std::uint64_t seed);

  /// Runs step `step` (from 0) with `learning_rate`. Nothing is updated where the loss or the gradient is not finite:
  /// the result then says so and the parameters are those of the step before.
  StepResult run(const ExecutionSpace& space, std::size_t step, double learning_rate);

 private:
  std::vector<std::size_t> choose_samples(std::size_t step, StepResult& result) const;
  void accumulate(const ExecutionSpace& space, std::size_t step, std::span<const std::size_t> samples, double weight);
  void assemble(std::span<const std::size_t> samples, std::size_t begin, std::size_t count);
  void reduce(const ExecutionSpace& space, std::size_t samples, double weight, StepResult& result);
  void update(const ExecutionSpace& space, std::size_t step, double learning_rate, double norm);
  double sum_losses(const ExecutionSpace& space, std::size_t samples);

  StepContext context_;
  MicroBatchLimit limit_;
  double clip_;
  std::uint64_t seed_;
  nn::GradientNorm norm_;
  Batch batch_;
  std::vector<std::uint32_t> ids_;
  Vector<float> losses_;  ///< (largest batch)
  HostVector<float> host_losses_;
};

/// True where loss and gradient norm are finite.
bool is_finite(const StepResult& result);

}  // namespace mylos::train
