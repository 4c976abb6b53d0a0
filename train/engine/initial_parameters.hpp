#pragma once

#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/task.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Where parameters begin.
namespace mylos::train {

/// Elements [first, first + count) of a tensor, which one of the ranks that own them has filled.
struct FilledPiece {
  std::size_t tensor = 0, first = 0, count = 0;
  std::size_t by = 0;  ///< rank of ShardingStrategy::copies
};

/// Fills master weights and state from the task. What the task has no values for begins from its initialiser with
/// `seed`; without a seed it is an error (std::runtime_error) that names the tensor: nothing is scored with random
/// weights. Each rank reads, or draws, elements that it owns, in pieces of at most piece_elements. Ranks that own the
/// same elements take turns, so that a file is read once by all ranks together: the master weights are complete after
/// pass_on of what this returns. Not collective.
[[nodiscard]] std::vector<FilledPiece> fill_parameters(const Task& task, std::optional<std::uint64_t> seed,
                                                       ParameterStore& store, parallel::ShardingStrategy& mode);
/// Gives each piece to the ranks that own it too. Collective; the values are seen after
/// ShardingStrategy::sync_parameters.
void pass_on(std::span<const FilledPiece> pieces, parallel::ShardingStrategy& mode);
/// Both, and publishes the values. Collective.
void load_initial_parameters(const ExecutionSpace& space, const Task& task, std::optional<std::uint64_t> seed,
                             ParameterStore& store, parallel::ShardingStrategy& mode);

}  // namespace mylos::train
