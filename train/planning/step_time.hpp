#pragma once

#include "parallel/sharding/sharding_strategy.hpp"
#include "train/planning/machine.hpp"

#include <cstddef>
#include <span>
#include <vector>

/// How long a step takes, by formula: what ranks compute, and what of their exchange is not hidden behind it.
namespace mylos::train {

/// The links over which a group of ranks exchanges.
struct Links {
  double local = 1e9;       ///< bytes a second of a rank's collectives inside a node
  std::size_t of_node = 1;  ///< ranks of a node
  Network network;
  bool copies = false;      ///< inside a node by what computes (Machine)
  double contention = 0.0;  ///< share of the computing that an exchange beside it takes (Machine)
};

/// Seconds of a collective over `ranks` neighbours: each rank sends (n - 1)/n of the array once (gather,
/// reduce-scatter) or twice (all-reduce, as a ring or as the two one after the other). Over several nodes the node's
/// links are shared by its ranks, each of which passes on a different part; a message's latency counts once for each
/// other rank of a node and each other node, as in the ring that NCCL runs.
double gather_seconds(const Links& links, std::size_t ranks, double bytes);
double all_reduce_seconds(const Links& links, std::size_t ranks, double bytes);

/// One unit of the model (what is gathered and reduced together) on one rank and in one micro-batch.
struct UnitWork {
  double forward = 0.0;    ///< seconds
  double backward = 0.0;   ///< seconds
  double values = 0.0;     ///< bytes in the compute type
  double gradients = 0.0;  ///< bytes in the type of exchange
};

struct StepTime {
  double compute = 0.0;    ///< forward and backward passes
  double optimizer = 0.0;  ///< norm, clip and update
  double exposed = 0.0;    ///< waiting for others, and what exchanges beside it take from computing
  double exchange = 0.0;   ///< all collectives of a rank, hidden or not
  double sent = 0.0;       ///< bytes that a rank sends in them

  double total() const { return compute + optimizer + exposed; }
};

/// How a step is spread over ranks.
struct StepLayout {
  parallel::ModeKind mode = parallel::ModeKind::replicated;
  std::size_t ranks = 1;
  std::size_t shards = 1;         ///< neighbours that split a unit
  std::size_t micro_batches = 1;  ///< of a step on a rank
};

/// A step of `units`, in the order of the forward pass, with one collective at a time beside the computing, in the
/// order and as early as parallel/sharding/sharding_strategy.hpp's modes begin them: a unit's gradients once its
/// backward pass has ended, values one unit ahead; in hybrid mode a unit's slice over groups, once a step, after the
/// next unit's gradients. `optimizer` is given.
StepTime step_time(const StepLayout& layout, const Links& links, std::span<const UnitWork> units, double optimizer);

}  // namespace mylos::train
