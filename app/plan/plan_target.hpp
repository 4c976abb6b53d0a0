#pragma once

#include "app/options/arguments.hpp"
#include "nn/model.hpp"
#include "tasks/interface/planned_run.hpp"
#include "train/planning/run_plan.hpp"

#include <cstddef>
#include <optional>

/// The machine that `mylos plan` plans for.
namespace mylos::app {

/// Returns the number of threads per rank on the planned machine.
std::size_t planned_threads(const Arguments& arguments);

/// Returns the device memory of NCCL's connections of a rank in the group of all ranks and, with `shards`, also in the
/// two groups of hybrid: `shards` neighbouring ranks, and the ranks that hold copies of the same slices. With
/// `sums_in_order`, of ordered sums too. As others report and by formula; not measured.
std::size_t nccl_bytes(const train::Machine& machine, const train::RankCounts& ranks, std::optional<std::size_t> shards,
                       bool sums_in_order);

/// Returns the network and the data to plan for; the network uses the attention kernel of the planned GPU. Errors:
/// those of TaskKind::plan.
tasks::PlannedRun planned_run(const Arguments& arguments);

/// Returns the machine to plan for, and the rate at which it trains models like `model`. The rate is measured, or
/// assumed if there is no matching measurement. Errors: UsageError if --gpu is missing or --nodes does not divide
/// --gpus; std::runtime_error naming the file of --bench if it does not match, or naming the precision if the machine
/// does not support it.
train::PlanTarget make_target(const Arguments& arguments, const nn::Model& model);

}  // namespace mylos::app
