#pragma once

#include "core/batch.hpp"
#include "train/engine/samples/sample_stream.hpp"

#include <cstddef>
#include <span>
#include <vector>

/// Assigns the samples of a step to ranks: a pure function of the global batch and the number of ranks, so that every
/// rank knows all assignments without communication.
namespace mylos::train {

/// Limits of a micro-batch; 0 = no limit.
struct MicroBatchLimit {
  std::size_t samples = 0;
  std::size_t tokens = 0;  ///< rows of all its samples
  /// If not 0, the number of micro-batches of a rank per step, at most one per sample. The other limits are then
  /// ignored.
  std::size_t parts = 0;
};

/// Returns the end of the micro-batch that begins at samples[begin]. It takes as many samples, in order, as the limit
/// allows, and at least one. With `parts`, sizes differ by at most one sample, and `begin` must be the start of a part.
std::size_t micro_batch_end(const SampleStream& stream, std::span<const std::size_t> samples, std::size_t begin,
                            const MicroBatchLimit& limit);

/// The split of a run's steps.
struct StepSplit {
  std::size_t ranks = 1;
  /// Number of micro-batch groups in every step with --deterministic, a power of two that `ranks` divides. If 0, each
  /// rank takes samples of about as many rows as the others and splits them by the limit of a micro-batch.
  std::size_t micro_batch_groups = 0;
  /// With micro-batch groups: the number of neighbouring ranks that reduce each micro-batch among themselves before the
  /// next one. If 1, a rank's micro-batches are summed locally before communication.
  std::size_t reduced_together = 1;
  /// Whether the samples of a micro-batch are ordered by length, the longest first. On a GPU, thread blocks of
  /// attention start in this order, and the last ones to end are short.
  bool longest_first = false;
};

/// Positions in the global batch.
using Positions = std::vector<std::size_t>;

/// The work of all ranks in one step. All ranks have the same number of micro-batches, because some strategies run
/// collectives in each. A micro-batch without positions is a dummy: the rank computes the shortest sample with weight
/// zero.
struct StepAssignment {
  std::vector<std::vector<Positions>> ranks;  ///< ranks[r][i] = micro-batch i of rank r
  std::size_t shortest = 0;                   ///< position of the shortest sample; the first if there are several

  std::size_t micro_batches() const { return ranks.front().size(); }
};

/// Splits a global batch, which must not be empty. Without micro-batch groups: assigns the longest sample first, each
/// to the rank with the fewest rows so far, at most 4/3 of the best possible maximum (Graham 1969); each rank then
/// cuts its samples into micro-batches in the order of the batch. With G groups and S samples: group i has positions [i
/// S / G, (i + 1) S / G), and each rank gets groups such that the sums of the ranks are subtrees of one binary tree
/// over the groups.
StepAssignment assign_step(const SampleStream& stream, std::span<const std::size_t> samples,
                           const MicroBatchLimit& limit, const StepSplit& split);

/// Returns `split` without the ranks that get none of so many samples, for counting work, which can skip such ranks.
StepSplit without_idle_ranks(StepSplit split, std::size_t samples);

/// Returns the micro-batch group that `rank` computes as its micro-batch `round`.
std::size_t group_of_round(const StepSplit& split, std::size_t rank, std::size_t round);

}  // namespace mylos::train
