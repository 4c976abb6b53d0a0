#pragma once

#include "core/arena.hpp"
#include "core/batch.hpp"
#include "core/kernels/products/gemm.hpp"
#include "core/kernels/scratch.hpp"
#include "core/parameter_store.hpp"
#include "core/unit_hooks.hpp"
#include "nn/adapters.hpp"
#include "nn/recompute.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// The interface between the training engine and a network.
namespace mylos::nn {

class AdapterArrays;

/// Inputs of a pass over one micro-batch, except the batch.
struct Pass {
  ExecutionSpace space;
  const Gemm& gemm;
  const ParameterStore& parameters;
  UnitHooks& hooks;
  Arena& arena;            ///< allocations are valid until the next pass begins
  std::uint64_t seed = 0;  ///< dropout is a function of (seed, step)
  std::uint64_t step = 0;
  Recompute recompute = Recompute::none;  ///< must equal the value passed to Model::plan
  /// (S, ParameterTable::observed_size()): for each sample of a training pass, the observations from which the state
  /// tensors are updated once per step. Empty if they are not needed.
  Matrix<float> observed = {};
  /// (1) The loss scale, a further factor on the gradients of `train`. Empty: 1.
  ConstVector<float> loss_scale = {};
  /// (S) For each sample of a training pass, the number of its labels that no other has a larger logit than. Models
  /// that do not count them leave it as it is. Empty if they are not needed.
  Vector<float> hits = {};
  // Set by the network while it runs.
  AdapterArrays* adapters = nullptr;
  bool is_first_trained = false;  ///< the backward pass ends with this unit: nobody reads the gradient of its input
};

/// A network with its loss. Implementations are templates over the element type, created by a function that takes a
/// Precision.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ParameterTable& table() const = 0;
  /// Freezes the tensors that one of `patterns` selects: "body", "head", units such as "embeddings", "layers.0-5" or
  /// "stages.1", or a glob of tensor names. To be called before anything is made for the table. Errors:
  /// std::runtime_error if a pattern selects nothing, or if no tensor is left to train.
  virtual void freeze(std::span<const std::string> patterns);
  /// Adds low-rank adapters to linear layers, and freezes what is not trained with them, in the place of `freeze`.
  /// Errors: those of add_adapters.
  virtual void adapt(const Adapters& adapters);

  /// Makes the allocations of `train` (training) or `predict` (inference) for a batch of this shape in a measuring
  /// arena. `recompute` selects the activations that `train` does not keep.
  virtual void plan(Arena& arena, const BatchShape& shape, ParameterStore::Purpose purpose,
                    Recompute recompute) const = 0;

  /// Returns true if `train` supports this setting. Every model supports Recompute::none.
  virtual bool can_recompute(Recompute recompute) const { return recompute == Recompute::none; }

  /// Makes what kernels keep for the batches that `batches` returns, so that no pass has to. Most kernels keep nothing;
  /// `batches` is not called then. Errors: those of the passes.
  virtual void prepare(const ExecutionSpace&, [[maybe_unused]] const BatchShapes& batches,
                       ParameterStore::Purpose) const {}

  /// Runs forward and backward: gradients += scale * pass.loss_scale * gradient of the sum of losses; losses (S) = the
  /// loss of each sample. Calls the unit hooks for each unit in both directions.
  virtual void train(const Pass& pass, const Batch& batch, float scale, const Vector<float>& losses) const = 0;

  /// Runs forward without dropout. Returns the outputs, one row for each row of the batch or for each sample, depending
  /// on the model; they are valid until the arena is used again. If `losses` (S) is not empty, it is filled, and the
  /// batch must contain labels.
  virtual Matrix<float> predict(const Pass& pass, const Batch& batch, const Vector<float>& losses) const = 0;

  /// Returns the matrix products of a pass over a batch of this shape, so that providers can be chosen and timed for
  /// them. Equal products are listed once, with their count and name. If empty, the default provider computes
  /// everything.
  virtual std::vector<GemmProduct> products(const BatchShape&, ParameterStore::Purpose) const { return {}; }

  /// Returns the bytes of kernel scratch that a pass over a batch of this shape needs in addition to the arena.
  virtual std::size_t scratch_bytes(const BatchShape&, ParameterStore::Purpose,
                                    [[maybe_unused]] const TeamProcessor& processor) const {
    return 0;
  }

  /// Returns, for each unit of the network, the floating-point operations of one training pass over a batch of this
  /// shape: forward, recomputation and backward, without those that frozen tensors save. Any shape with rows and
  /// samples is allowed; only their numbers matter.
  virtual std::vector<double> unit_flops(const BatchShape& shape, Recompute recompute) const = 0;
  /// Returns the sum over all units. Throughput figures use the sum without recomputation.
  double training_flops(const BatchShape& shape, Recompute recompute = Recompute::none) const;
};

}  // namespace mylos::nn
