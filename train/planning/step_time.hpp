#pragma once

#include "parallel/sharding/sharding_strategy.hpp"
#include "train/planning/machine.hpp"

#include <cstddef>
#include <span>
#include <vector>

/// Predicts the step time by formula: the computation of the ranks, and the communication that it does not hide.
namespace mylos::train {

/// The links that a group of ranks communicates over.
struct Links {
  double local = 1e9;       ///< bytes per second of a rank's collectives within a node
  std::size_t of_node = 1;  ///< ranks per node
  Network network;
  bool copies = false;      ///< the compute units also copy the bytes within a node (see Machine)
  double contention = 0.0;  ///< fraction of compute throughput lost while a collective runs (see Machine)
};

/// Return the seconds of a collective over `ranks` neighbours. Each rank sends (n - 1)/n of the array once
/// (all-gather, reduce-scatter) or twice (all-reduce, as a ring or as both in sequence). Over several nodes, the
/// ranks of a node share its links, and each forwards a different part. The message latency counts once for each other
/// rank of a node and once for each other node, as in NCCL's ring.
double gather_seconds(const Links& links, std::size_t ranks, double bytes);
double all_reduce_seconds(const Links& links, std::size_t ranks, double bytes);

/// The work of one rank for one unit of the model (gathered and reduced together) in one micro-batch.
struct UnitWork {
  double forward = 0.0;    ///< seconds
  double backward = 0.0;   ///< seconds
  double values = 0.0;     ///< bytes of parameters in the compute type
  double gradients = 0.0;  ///< bytes of gradients in the communication type
};

struct StepTime {
  double compute = 0.0;    ///< forward and backward passes
  double optimizer = 0.0;  ///< norm, clipping and update
  double exposed = 0.0;    ///< waiting for other ranks, and the slowdown of computing by concurrent collectives
  double exchange = 0.0;   ///< all collectives of a rank, hidden or not
  double sent = 0.0;       ///< bytes that a rank sends in them

  double total() const { return compute + optimizer + exposed; }
};

/// The distribution of a step over ranks.
struct StepLayout {
  parallel::ModeKind mode = parallel::ModeKind::replicated;
  std::size_t ranks = 1;
  std::size_t shards = 1;         ///< neighbouring ranks that shard a unit
  std::size_t micro_batches = 1;  ///< per step and rank
};

/// Predicts a step of `units`, given in the order of the forward pass. One collective runs at a time beside the
/// computation. Collectives start in the order and as early as in parallel/sharding/sharding_strategy.hpp: the
/// gradients of a unit after its backward pass, its parameters one unit ahead; in hybrid mode the sums of a unit's
/// slice over groups once per step, after the gradients of the next unit. `optimizer` gives the seconds of the update.
StepTime step_time(const StepLayout& layout, const Links& links, std::span<const UnitWork> units, double optimizer);

}  // namespace mylos::train
