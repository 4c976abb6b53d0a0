#pragma once

#include "core/arena.hpp"
#include "core/batch.hpp"
#include "core/kernels/gemm.hpp"
#include "core/kernels/scratch.hpp"
#include "core/parameter_store.hpp"
#include "core/unit_hooks.hpp"
#include "nn/recompute.hpp"

#include <cstdint>
#include <vector>

/// What the engine knows of a network.
namespace mylos::nn {

/// Everything a pass over one micro-batch works with.
struct Pass {
  ExecutionSpace space;
  const Gemm& gemm;
  const ParameterStore& parameters;
  UnitHooks& schedule;
  Arena& arena;            ///< what a pass takes is given back when the next one begins
  std::uint64_t seed = 0;  ///< dropout is drawn from (seed, step)
  std::uint64_t step = 0;
  Recompute recompute = Recompute::none;  ///< as it was planned
  /// (S, ParameterTable::observed_size()) what each sample of a training pass observes for the state tensors, which are
  /// made from it once a step; empty: nothing is asked for.
  Matrix<float> observed = {};
};

/// A network with its loss. Implementations are templates over the element type, made by a function of Precision.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ParameterTable& table() const = 0;

  /// Takes from a measuring arena what `train` (training) or `predict` would take for a batch of this shape.
  /// `recompute` says what `train` does not keep.
  virtual void plan(Arena& arena, const BatchShape& shape, ParameterStore::Purpose purpose,
                    Recompute recompute) const = 0;

  /// Whether `train` knows this setting; every model knows none.
  virtual bool can_recompute(Recompute recompute) const { return recompute == Recompute::none; }

  /// Forward and backward: gradients += scale * gradient of the sum of losses; losses (S) = the loss of each sample.
  /// Each unit is told to the schedule in both directions.
  virtual void train(const Pass& pass, const Batch& batch, float scale, const Vector<float>& losses) const = 0;

  /// Forward without dropout. Returns the model's outputs, one row for each row of the batch (or for each sample, as
  /// the model says), which are valid until the arena is used again. losses (S) are filled if it has an extent; the
  /// batch then holds labels.
  virtual Matrix<float> predict(const Pass& pass, const Batch& batch, const Vector<float>& losses) const = 0;

  /// What a pass over a batch of this shape multiplies, so that providers can be chosen for it and figures of it can be
  /// named; equal products once, with their count and name. Empty: the default provider computes everything.
  virtual std::vector<GemmProduct> products(const BatchShape&, ParameterStore::Purpose) const { return {}; }

  /// Bytes that kernels work in beside the arena in a pass over a batch of this shape.
  virtual std::size_t scratch_bytes(const BatchShape&, ParameterStore::Purpose,
                                    [[maybe_unused]] const TeamProcessor& processor) const {
    return 0;
  }

  /// Floating-point operations of one training pass over a batch of this shape, for each unit of the table: forward,
  /// what is recomputed, and backward. Any shape with rows and samples is allowed; only their numbers matter.
  virtual std::vector<double> unit_flops(const BatchShape& shape, Recompute recompute) const = 0;
  /// The sum over the units. Throughput figures are made of that without recomputation.
  double training_flops(const BatchShape& shape, Recompute recompute = Recompute::none) const;
};

}  // namespace mylos::nn
