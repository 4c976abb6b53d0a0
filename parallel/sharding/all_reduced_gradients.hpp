#pragma once

#include "parallel/communicator/communicator.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "parallel/sharding/tree_sum.hpp"
#include "parallel/sharding/unit_batch.hpp"

#include <span>
#include <vector>

/// Gradients that are complete on every rank. Micro-batches are accumulated in place. After the last one each unit is
/// summed over ranks, while the backward pass of the next units runs. Small units are summed together, if the
/// communicator gains from it.
namespace mylos::parallel {

class AllReducedGradients {
 public:
  /// Number of buffers for exchanging units in bfloat16, used in turn.
  static constexpr std::size_t rounded_positions = 2;

  /// If the mode shards the optimizer, each rank receives the sum of its slice only, otherwise of the whole unit.
  /// `store` must own its gradients; it and `mesh` must outlive this object.
  AllReducedGradients(const ModeSettings& settings, Mesh& mesh, ParameterStore& store);
  ~AllReducedGradients();
  AllReducedGradients(const AllReducedGradients&) = delete;
  AllReducedGradients& operator=(const AllReducedGradients&) = delete;

  void begin_step(const ExecutionSpace& space);
  void begin_micro_batch(bool last);
  /// Called when the unit's gradients of the micro-batch are complete on this rank.
  void ready(std::size_t unit);
  /// Returns when all sums over ranks are complete.
  void finish(const ExecutionSpace& space);

 private:
  /// A buffer for one unit in the type in which it is exchanged.
  struct Rounded {
    Vector<bfloat16> memory;
    std::size_t unit = 0;
    bool summing = false;
    Event summed;
  };

  /// A unit's gradients in the type in which they are exchanged.
  struct Sent {
    std::size_t unit = 0;
    Buffer all;
  };

  Communicator& summing_ranks() const;
  Event reduce(std::span<const Sent> units);
  void reduce_in_place(std::span<const std::size_t> units);
  void reduce_rounded(std::size_t unit);
  void take_back(Rounded& position);
  Vector<float> part_of(std::size_t unit) const;

  Mesh& mesh_;
  ParameterStore& store_;
  bool splits_, tree_sums_;
  bool is_last_ = false;
  std::vector<TreeSum> partial_;  ///< one per unit, or empty
  std::vector<Rounded> rounded_;  ///< rounded_positions elements, or empty
  std::size_t turn_ = 0;
  UnitBatch batch_;        ///< units whose gradients wait to be summed, in float
  std::size_t ready_ = 0;  ///< number of units that were ready in the last micro-batch
  std::vector<Event> sums_;
  ExecutionSpace space_;
};

}  // namespace mylos::parallel
