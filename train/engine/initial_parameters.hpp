#pragma once

#include "parallel/sharding/parameter_mode.hpp"
#include "train/engine/task.hpp"

#include <cstdint>
#include <optional>

/// Where parameters begin.
namespace mylos::train {

/// Fills masters and state from the task. What the task has no values for begins from its initialiser with `seed`;
/// without a seed it is an error (std::runtime_error) that names the row: nothing is scored with random weights. Each
/// rank reads, or draws, the elements that it owns and no others, in pieces of at most piece_elements. Not collective:
/// the values are seen after ParameterMode::publish_values.
void fill_parameters(const Task& task, std::optional<std::uint64_t> seed, ParameterStore& store,
                     parallel::ParameterMode& mode);
/// The same, and publishes the values.
void load_initial_parameters(const ExecutionSpace& space, const Task& task, std::optional<std::uint64_t> seed,
                             ParameterStore& store, parallel::ParameterMode& mode);

}  // namespace mylos::train
