#pragma once

#include "core/kernels/products/gemm_product.hpp"
#include "train/engine/memory/rank_layout.hpp"
#include "train/engine/samples/step_assignment.hpp"
#include "train/engine/train_config.hpp"
#include "train/engine/workload.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

/// The memory that a run needs on each rank with a given layout: process memory, or device memory in a device build.
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
  RankLayout layout = {};
  parallel::StrategySettings strategy = {};

  /// Returns the bytes that training allocates.
  std::size_t total() const {
    return values + gradients + exchange + optimizer + std::max(activations + workspace + scratch, loading);
  }
  /// Returns the peak of resident bytes.
  std::size_t peak() const { return std::max(before, program + total() + output); }
};

/// Returns whether the user chose the split of a step.
bool has_chosen_split(const TrainConfig& config);

/// Plans the memory of a run of `steps` steps with this layout, whether or not it fits. Unless the user chose the
/// micro-batch, halves it until the run fits into `available` bytes or a micro-batch has one sample.
MemoryPlan plan_layout(const Workload& workload, const TrainConfig& config, std::size_t steps, std::size_t available,
                       const RankLayout& layout, const RankCounts& ranks);

/// Returns `plan` for micro-batches of `shape` and another recomputation. Only the memory of passes is recomputed.
MemoryPlan with_micro_batch(MemoryPlan plan, const BatchShape& shape, const Workload& workload, nn::Recompute recompute,
                            const RankCounts& ranks);

/// Returns the matrix products of the run's largest passes.
std::vector<GemmProduct> largest_products(const Workload& workload, const MemoryPlan& plan);

}  // namespace mylos::train
