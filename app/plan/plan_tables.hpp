#pragma once

#include "train/planning/run_plan.hpp"

#include <span>
#include <string>

namespace mylos::app {

/// Returns a note on a batch that spends more than a quarter of its step on communication: "12 sequences on 8 GPUs: the
/// network takes 86 of 106 ms; a batch of 224 would reach 90 %". Empty for other batches.
std::string batch_note(const train::StrategyPlan& plan, const train::WorkKind& work, const train::RankCounts& ranks);

/// Prints the tables of `mylos plan` for each mode: memory, times, the largest micro-batches, efficiencies, and notes
/// on these if needed.
void print_tables(std::span<const train::StrategyPlan> plans, const train::WorkKind& work, std::size_t ranks);

}  // namespace mylos::app
