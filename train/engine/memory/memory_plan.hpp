#pragma once

#include "core/kernels/products/gemm.hpp"
#include "train/engine/memory/layout_memory.hpp"

/// Plans the memory of each rank before a run starts, and chooses the layout that fits.
namespace mylos::train {

/// Plans the memory of a run of `steps` steps, without the memory already in use (see note_products). All ranks that
/// pass the same `available` bytes get the same plan. If neither samples nor tokens of a micro-batch are given, halves
/// the micro-batch until it fits. If no sharding strategy is given, chooses replicated, or sharded if there are several
/// ranks and only that fits. A recorded layout with the same number of ranks takes precedence over both if it fits and
/// does not contradict the settings. Errors: std::runtime_error with the parts if the run does not fit, and for
/// settings that the model, samples or ranks do not support: a recomputation, fewer tokens than the longest sample,
/// errors of lay_out.
MemoryPlan plan_memory(const Workload& workload, const TrainConfig& config, std::size_t steps, std::size_t available,
                       const RankCounts& ranks = {});

/// Records the memory in use now as the baseline, and the workspace of the run's matrix products: on a device as
/// reported by the providers, on a host measured by computing each product once.
void note_products(MemoryPlan& plan, const ExecutionSpace& space, const Gemm& gemm, const Workload& workload);

}  // namespace mylos::train
