#pragma once

#include "train/planning/run_plan.hpp"

#include <span>

namespace mylos::app {

/// Prints what `mylos plan` says of each mode: memory, times, the largest micro-batches, efficiencies, and notes
/// on these where they need any.
void print_tables(std::span<const train::ModePlan> plans, const train::WorkKind& work, std::size_t ranks);

}  // namespace mylos::app
