#pragma once

#include "core/parameter_store.hpp"
#include "parallel/sharding/parameter_mode.hpp"
#include "train/engine/task.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

/// The model's rows on the host, in pieces, so that it is exported without a copy of it in memory.
namespace mylos::train {

/// Values of a state row from its element `first` on. Every rank has them.
void read_state(const ParameterStore& store, std::size_t state_row, std::size_t first, std::span<float> values);

/// Takes values of a row from its element `first` on.
using RowSink = std::function<void(const ParameterRow& row, std::size_t first, std::span<const float> values)>;

/// Gives `take` the master values of all rows in the table's order, in pieces, on the first rank, to which the others
/// send those that they own. Collective.
void gather_parameters(parallel::Communicator& ranks, const ParameterStore& store, parallel::ParameterMode& mode,
                       const RowSink& take);
/// The same for the state rows, on every rank. Not collective.
void read_states(const ParameterStore& store, const RowSink& take);

/// Writes the model as `task` exports it into `directory`. Collective: the first rank writes what the others send it.
/// Errors: what the export throws, on every rank, none of which is left waiting.
void export_model(parallel::Communicator& ranks, const Task& task, const ParameterStore& store,
                  parallel::ParameterMode& mode, const std::filesystem::path& directory);

}  // namespace mylos::train
