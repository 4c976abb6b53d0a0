#pragma once

#include "core/parameters.hpp"
#include "parallel/communicator/collective_calls.hpp"
#include "parallel/sharding/sharding_strategy.hpp"

#include <cstddef>
#include <vector>

/// The collective calls of a training step in each mode, on any number of ranks.
namespace mylos::parallel {

/// Returns the members of the two groups that Mesh makes for a rank: those that split a state with it, and those that
/// hold the same part. `shard_size` must divide `ranks`.
std::vector<CallRecorder::Members> mesh_groups(std::size_t rank, std::size_t ranks, std::size_t shard_size);

/// Returns the calls that a rank makes in a training step: the strategy itself runs, as for a model of `table`, on
/// communicators that exchange nothing. Includes the gradients' norm and the units that are gathered after the update;
/// the losses and other short values that the engine exchanges in every mode are left out. The groups of the calls are
/// all ranks and then mesh_groups, with ranks_that_split as the shard size. Every rank makes the same calls. Takes the
/// mode's memory for values and gradients.
std::vector<CollectiveCall> calls_of_step(const ModeSettings& settings, std::size_t shard_size, std::size_t rank,
                                          std::size_t ranks, const ParameterTable& table, Precision precision);

}  // namespace mylos::parallel
