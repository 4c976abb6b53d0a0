#pragma once

#include "train/engine/micro_batches.hpp"

#include <cstddef>
#include <span>
#include <vector>

/// Which rank computes which samples of a step: a pure function of the global batch and the number of ranks, so that
/// every rank knows all shares without a message.
namespace mylos::train {

/// How the steps of a run are split.
struct StepSplit {
  std::size_t ranks = 1;
  /// Micro-batches of every step on every launch (--deterministic), a power of two that `ranks` divides. 0: each rank
  /// takes samples of about as many rows as the others, and cuts them by the limit of a micro-batch.
  std::size_t leaves = 0;
  /// With leaves: so many neighbouring ranks reduce each micro-batch among themselves before the next one. 1: a rank's
  /// micro-batches are summed before any rank hears of them.
  std::size_t reduced_together = 1;
};

/// Positions in the global batch, ascending.
using Positions = std::vector<std::size_t>;

/// What the ranks compute of one step. All have equally many micro-batches, because each is a collective of some modes;
/// one without places is a dummy: the rank computes the shortest sample with weight zero.
struct StepAssignment {
  std::vector<std::vector<Positions>> ranks;  ///< ranks[r][i] = micro-batch i of rank r
  std::size_t shortest = 0;                   ///< place of the shortest sample, the first of several

  std::size_t micro_batches() const { return ranks.front().size(); }
};

/// Splits a global batch, which is not empty. Without leaves: the longest sample first, each to the rank with the
/// fewest rows so far, at most 4/3 of the best split's largest share (Graham 1969); a rank's samples then stand in the
/// order of the batch. With leaves: leaf i has places [i S / leaves, (i + 1) S / leaves), and the leaves of a rank are
/// such that the sums the ranks make are parts of one binary tree over the leaves.
StepAssignment assign_step(const SampleStream& stream, std::span<const std::size_t> samples,
                           const MicroBatchLimit& limit, const StepSplit& split);

/// `split` without ranks that have none of so many samples: for counting, which need not go through those.
StepSplit without_idle_ranks(StepSplit split, std::size_t samples);

/// The leaf that is micro-batch `round` of `rank`.
std::size_t group_of_round(const StepSplit& split, std::size_t rank, std::size_t round);

}  // namespace mylos::train
