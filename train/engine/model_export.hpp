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

/// Elements of a piece at most: 4 MiB.
inline constexpr std::size_t piece_elements = std::size_t{1} << 20;

/// Calls `use` for the pieces of `size` elements, in order.
void for_each_piece(std::size_t size, const std::function<void(std::size_t first, std::size_t count)>& use);

/// Values of a state row from its element `first` on. Every rank has them.
void read_state(const ParameterStore& store, std::size_t state_row, std::size_t first, std::span<float> values);

/// Takes values of a row from its element `first` on.
using RowSink = std::function<void(const ParameterRow& row, std::size_t first, std::span<const float> values)>;

/// Gives `take` the master values of all rows in the table's order, in pieces, on every rank. Collective.
void read_parameters(const ParameterStore& store, parallel::ParameterMode& mode, const RowSink& take);
/// The same for the state rows. Not collective.
void read_states(const ParameterStore& store, const RowSink& take);

/// Writes the model as `task` exports it into `directory`. Collective: every rank reads the rows, the first one writes.
/// Errors: what the export throws, on every rank, none of which is left waiting.
void export_model(parallel::Communicator& ranks, const Task& task, const ParameterStore& store,
                  parallel::ParameterMode& mode, const std::filesystem::path& directory);

}  // namespace mylos::train
