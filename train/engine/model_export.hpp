#pragma once

#include "core/parameter_store.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/task.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

/// Exports the model's tensors through the host piece by piece, without a copy of the model in memory.
namespace mylos::train {

/// Reads values of a state tensor from element `first` on. State tensors are replicated on every rank.
void read_state(const ParameterStore& store, std::size_t state_tensor, std::size_t first, std::span<float> values);

/// Receives values of a tensor from element `first` on.
using TensorSink = std::function<void(const ParameterTensor& tensor, std::size_t first, std::span<const float> values)>;

/// Passes the master weights of all tensors to `take` on the first rank, in pieces and in the table's order. The other
/// ranks send the elements that they own. Collective.
void gather_parameters(parallel::Communicator& ranks, const ParameterStore& store, parallel::ShardingStrategy& mode,
                       const TensorSink& take);
/// Passes the state tensors to `take` on every rank. Not collective.
void read_states(const ParameterStore& store, const TensorSink& take);

/// Exports the model of `task` into `directory`. The first rank writes; the others send it their parts. Collective.
/// Errors: an error of the export is thrown on every rank, so that no rank is left waiting.
void export_model(parallel::Communicator& ranks, const Task& task, const ParameterStore& store,
                  parallel::ShardingStrategy& mode, const std::filesystem::path& directory);

}  // namespace mylos::train
