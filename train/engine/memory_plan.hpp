#pragma once

#include "core/parameter_store.hpp"
#include "train/engine/rank_layout.hpp"
#include "train/engine/step_assignment.hpp"
#include "train/engine/train_config.hpp"
#include "train/engine/workload.hpp"

#include <algorithm>

/// Plans the memory of each rank before a run starts: process memory, or device memory in a device build.
namespace mylos::train {

struct MemoryPlan {
  std::size_t program = 0;    ///< in use before the run allocates anything: program, libraries, questions, windows; on
                              ///< a device the memory used by all processes
  std::size_t before = 0;     ///< peak resident memory until then
  std::size_t values = 0;     ///< parameters in the compute type, and float master weights beside 16-bit ones
  std::size_t gradients = 0;  ///< gradients, and observations of a step's samples for the state tensors
  std::size_t exchange = 0;   ///< gradients in the communication type, and receive buffers
  std::size_t optimizer = 0;  ///< optimizer slots
  std::size_t activations = 0;  ///< the arena
  std::size_t workspace = 0;    ///< GEMM workspace: copies of operands and, on a host, generated code and heaps
  std::size_t scratch = 0;      ///< kernel scratch of teams
  std::size_t output = 0;       ///< answers of an evaluation, pieces of files being written, samples that are read
                                ///< ahead
  std::size_t loading = 0;      ///< the largest piece of a tensor as float, before the arena is used
  MicroBatchLimit limit;        ///< limit of a micro-batch
  std::size_t asked = 0;        ///< samples per micro-batch originally requested, before halving to fit
  BatchShape largest;           ///< largest micro-batch over all ranks
  RankLayout layout;
  parallel::ModeSettings mode;

  /// Returns the bytes that training allocates.
  std::size_t total() const {
    return values + gradients + exchange + optimizer + std::max(activations + workspace + scratch, loading);
  }
  /// Returns the peak of resident bytes.
  std::size_t peak() const { return std::max(before, program + total() + output); }
};

/// Plans the memory of a run of `steps` steps, without the memory already in use (see note_products). All ranks that
/// pass the same `available` bytes get the same plan. If neither samples nor tokens of a micro-batch are given, halves
/// the micro-batch until it fits. If no sharding strategy is given, chooses replicated, or sharded if there are several
/// ranks and only that fits. A recorded layout with the same number of ranks takes precedence over both if it fits and
/// does not contradict the settings. Errors: std::runtime_error with the parts if the run does not fit, and for
/// settings that the model, samples or ranks do not support: a recomputation, fewer tokens than the longest sample,
/// errors of lay_out.
MemoryPlan plan_memory(const Workload& workload, const TrainConfig& config, std::size_t steps, std::size_t available,
                       const RankCounts& ranks = {});

/// Returns `plan` for micro-batches of `shape` and another recomputation. Only the memory of passes is recomputed.
MemoryPlan with_micro_batch(MemoryPlan plan, const BatchShape& shape, const Workload& workload, nn::Recompute recompute,
                            const RankCounts& ranks);

/// Returns the matrix products of the run's largest passes.
std::vector<GemmProduct> largest_products(const Workload& workload, const MemoryPlan& plan);

/// Records the memory in use now as the baseline, and the workspace of the run's matrix products: on a device as
/// reported by the providers, on a host measured by computing each product once.
void note_products(MemoryPlan& plan, const ExecutionSpace& space, const Gemm& gemm, const Workload& workload);

}  // namespace mylos::train
