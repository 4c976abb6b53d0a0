#pragma once

#include "core/parameter_store.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/task.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

/// The model's tensors on the host, in pieces, so that it is exported without a copy of it in memory.
namespace mylos::train {

/// Values of a state tensor from its element `first` on. Every rank has them.
void read_state(const ParameterStore& store, std::size_t state_tensor, std::size_t first, std::span<float> values);

/// Takes values of a tensor from its element `first` on.
using RowSink = std::function<void(const ParameterTensor& tensor, std::size_t first, std::span<const float> values)>;

/// Gives `take` the master weights of all tensors in the table's order, in pieces, on the first rank, to which the
/// others send those that they own. Collective.
void gather_parameters(parallel::Communicator& ranks, const ParameterStore& store, parallel::ShardingStrategy& mode,
                       const RowSink& take);
/// The same for the state tensors, on every rank. Not collective.
void read_states(const ParameterStore& store, const RowSink& take);

/// Writes the model as `task` exports it into `directory`. Collective: the first rank writes what the others send it.
/// Errors: what the export throws, on every rank, none of which is left waiting.
void export_model(parallel::Communicator& ranks, const Task& task, const ParameterStore& store,
                  parallel::ShardingStrategy& mode, const std::filesystem::path& directory);

}  // namespace mylos::train
