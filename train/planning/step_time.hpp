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
  Network network = {};
  /// Collectives first exchange within nodes, then between them, as over MPI (see exchanges.hpp). Otherwise they are
  /// NCCL's rings over all ranks.
  bool by_node = false;
  bool copies = false;      ///< the compute units also copy the bytes within a node (see Machine)
  double contention = 0.0;  ///< fraction of compute throughput lost while a collective runs (see Machine)
};

/// The cost of a collective.
struct Exchanged {
  double seconds = 0.0;
  double rank_sent = 0.0;  ///< bytes that a rank sends
  double node_sent = 0.0;  ///< bytes that a node sends to other nodes
};

/// Return the cost of a long array of `bytes`, over `ranks` neighbours. Latency counts once for each other rank of a
/// node and once for each other node.
///
/// As a ring over n ranks, each rank sends (n - 1)/n of the array, and so does a node, whose ranks share its link and
/// forward different parts. By node, a rank sends (m - 1)/m of it to the m ranks of its node, and a node sends
/// (N - 1)/N of it to the N nodes. Sums then send partial sums between nodes, whose elements have `partial` times the
/// bytes of the array's. The two take place one after the other, because one thread makes all copies of a rank.
Exchanged all_gather_cost(const Links& links, std::size_t ranks, double bytes);
Exchanged reduce_scatter_cost(const Links& links, std::size_t ranks, double bytes, double partial = 1.0);
/// A reduce-scatter followed by an all-gather.
Exchanged all_reduce_cost(const Links& links, std::size_t ranks, double bytes, double partial = 1.0);

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
  double node_sent = 0.0;  ///< bytes that a node sends to other nodes in them

  double total() const { return compute + optimizer + exposed; }
};

/// The distribution of a step over ranks.
struct StepLayout {
  parallel::StrategyKind strategy = parallel::StrategyKind::replicated;
  std::size_t ranks = 1;
  std::size_t shards = 1;         ///< neighbouring ranks that shard a unit
  std::size_t micro_batches = 1;  ///< per step and rank
  double partial = 1.0;           ///< bytes of an element of partial sums over those of an exchanged gradient
};

/// Predicts a step of the units of `table`; `units` has the work of each. One collective runs at a time beside the
/// computation. Collectives start about as the policies of parallel/sharding begin them: the
/// gradients of a unit after its backward pass, its parameters one unit ahead; in hybrid mode the sums of a unit's
/// slice over groups once per step, after the gradients of the next unit. Units that are still in memory are not
/// gathered again (strategy_record.hpp). `optimizer` gives the seconds of the update.
StepTime step_time(const StepLayout& layout, const Links& links, const ParameterTable& table,
                   std::span<const UnitWork> units, double optimizer);

}  // namespace mylos::train
