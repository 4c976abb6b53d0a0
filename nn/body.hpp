#pragma once

#include "nn/head.hpp"

#include <memory>

/// A network without its head: units that turn a batch into a vector for each row (a token, an image).
namespace mylos::nn {

/// The arrays of one pass through a body, and the work of its units, which are numbered from 0. A network calls them in
/// order, with the hooks around each call.
template <class T>
class BodyPass {
 public:
  virtual ~BodyPass() = default;

  virtual void forward(const Pass& pass, const Batch& batch, std::size_t unit) = 0;
  /// Completes output().x after the last unit, with tensors of the head's unit.
  virtual void finish(const Pass&, const Batch&) {}
  /// The backward pass of `finish`, from output().dx.
  virtual void finish_backward(const Pass&, const Batch&) {}
  /// Computes again what pass.recompute did not keep, bit for bit. Not called for the last unit: its activations are
  /// still in the memory that units share when its backward pass begins.
  virtual void restore(const Pass& pass, const Batch& batch, std::size_t unit) = 0;
  /// Adds the unit's gradients, and passes the gradient on to the unit before.
  virtual void backward(const Pass& pass, const Batch& batch, std::size_t unit) = 0;

  const HeadInput<T>& output() const { return output_; }

 protected:
  HeadInput<T> output_;
};

/// Floating-point operations of a unit's training pass.
struct UnitFlops {
  double forward = 0.0;
  double input_gradients = 0.0;   ///< for the gradient of the unit's input
  double weight_gradients = 0.0;  ///< saved by frozen tensors
  double again = 0.0;             ///< recomputation

  double sum() const { return forward + input_gradients + weight_gradients + again; }
};

template <class T>
class Body {
 public:
  using Purpose = ParameterStore::Purpose;
  virtual ~Body() = default;

  /// Elements of each row of the result.
  virtual std::size_t width() const = 0;
  virtual void add_units(ParameterTable::Builder& builder) const = 0;
  /// Adds the tensors of BodyPass::finish to the head's unit.
  virtual void add_final_tensors(ParameterTable::Builder&) const {}
  /// Looks up the tensors in the finished table.
  virtual void find_tensors(const ParameterTable& table) = 0;

  /// Takes the arrays of a pass from the arena. The body must outlive them. A training pass has no backward pass of the
  /// units before `first_trained`, so they keep nothing for one. The number of units, with that of the head, means that
  /// the body has no backward pass at all; output().dx is then empty.
  virtual std::unique_ptr<BodyPass<T>> begin(Arena& arena, const BatchShape& shape, Purpose purpose,
                                             Recompute recompute, std::size_t first_trained) const = 0;

  // The body's part of the functions of Model, with the operations of one unit.
  virtual bool can_recompute(Recompute) const { return true; }
  virtual std::vector<GemmProduct> products(const BatchShape& shape, Purpose purpose) const = 0;
  virtual UnitFlops training_flops(std::size_t unit, const BatchShape& shape, Recompute recompute) const = 0;
  virtual std::size_t scratch_bytes(const BatchShape&, Purpose, [[maybe_unused]] const TeamProcessor& processor) const {
    return 0;
  }
  virtual void prepare(const ExecutionSpace&, [[maybe_unused]] const BatchShapes& batches, Purpose) const {}
};

}  // namespace mylos::nn
