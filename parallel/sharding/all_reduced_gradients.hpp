#pragma once

#include "parallel/communicator/communicator.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "parallel/sharding/tree_sum.hpp"

#include <vector>

/// Gradients that are whole on every rank: micro-batches are added in place, and each unit is summed over ranks after
/// the last one, while the next units' backward pass computes.
namespace mylos::parallel {

class AllReducedGradients {
 public:
  /// Units in memory at a time in the type they are exchanged in, where that is not their own: in turns.
  static constexpr std::size_t rounded_positions = 2;

  /// Where the mode splits the optimizer, each rank gets the sum of its part, else all of it. `store` owns its
  /// gradients; it and `mesh` outlive this.
  AllReducedGradients(const ModeSettings& settings, Mesh& mesh, ParameterStore& store);
  ~AllReducedGradients();
  AllReducedGradients(const AllReducedGradients&) = delete;
  AllReducedGradients& operator=(const AllReducedGradients&) = delete;

  void begin_step(const ExecutionSpace& space);
  void begin_micro_batch(bool last);
  /// The unit's gradients of the micro-batch are complete on this rank.
  void ready(std::size_t unit);
  /// Returns when every part is the sum over ranks.
  void finish(const ExecutionSpace& space);

 private:
  /// A unit in the type in which it is exchanged.
  struct Rounded {
    Vector<bfloat16> memory;
    std::size_t unit = 0;
    bool summing = false;
    Event summed;
  };

  Event reduce(std::size_t unit, const Buffer& all);
  void reduce_rounded(std::size_t unit);
  void take_back(Rounded& position);
  Vector<float> part_of(std::size_t unit) const;

  Mesh& mesh_;
  ParameterStore& store_;
  bool splits_, tree_sums_;
  bool is_last_ = false;
  std::vector<TreeSum> partial_;  ///< of each unit, or none
  std::vector<Rounded> rounded_;  ///< rounded_positions or none
  std::size_t turn_ = 0;
  std::vector<Event> sums_;
  ExecutionSpace space_;
};

}  // namespace mylos::parallel
