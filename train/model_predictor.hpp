#pragma once

#include "core/arena.hpp"
#include "nn/model.hpp"
#include "train/task.hpp"

/// Predictor over a model whose parameters are in a store.
namespace mylos::train {

class ModelPredictor final : public Predictor {
 public:
  /// All outlive it. Batches up to `largest` samples' losses may be asked for.
  ModelPredictor(const ExecutionSpace& space, const nn::Model& model, const ParameterStore& store,
                 UnitSchedule& schedule, const Gemm& gemm, Arena& arena, std::size_t largest);

  std::span<const float> predict(const Batch& batch, std::span<float> losses) override;

 private:
  const nn::Model& model_;
  nn::Pass pass_;
  Vector<float> losses_;
  HostVector<float> outputs_;
};

}  // namespace mylos::train
