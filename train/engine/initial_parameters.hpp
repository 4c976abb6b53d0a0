#pragma once

#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/task.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Initialises parameters.
namespace mylos::train {

/// Elements [first, first + count) of a tensor, filled by one of the ranks that own them.
struct FilledPiece {
  std::size_t tensor = 0, first = 0, count = 0;
  std::size_t by = 0;  ///< rank in ShardingStrategy::copies
};

/// Fills master weights and state from the task. Tensors without values in the task are drawn from their initialiser
/// with `seed`; without a seed this is an error (std::runtime_error) that names the tensor: nothing is scored with
/// random weights. Each rank reads, or draws, elements that it owns, in pieces of at most piece_elements. Ranks that
/// own the same elements take turns, so that together they read a file once: the master weights are complete after
/// pass_on of the returned pieces. Not collective.
[[nodiscard]] std::vector<FilledPiece> fill_parameters(const Task& task, std::optional<std::uint64_t> seed,
                                                       ParameterStore& store, parallel::ShardingStrategy& mode);
/// Copies each piece to the other ranks that own it. Collective. ShardingStrategy::sync_parameters must follow to
/// update the parameters.
void pass_on(std::span<const FilledPiece> pieces, parallel::ShardingStrategy& mode);
/// Calls fill_parameters, pass_on and sync_parameters. Collective.
void load_initial_parameters(const ExecutionSpace& space, const Task& task, std::optional<std::uint64_t> seed,
                             ParameterStore& store, parallel::ShardingStrategy& mode);

}  // namespace mylos::train
