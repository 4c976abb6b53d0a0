#pragma once

#include "train/planning/run_plan.hpp"

#include <span>
#include <string>

namespace mylos::app {

/// Returns a line for a batch whose step spends more than a quarter of its time on communication: "12 sequences on 8
/// GPUs: the network takes 86 of 106 ms; a batch of 224 would reach 90 %". Empty for other batches.
std::string batch_note(const train::ModePlan& plan, const train::WorkKind& work, const train::RankCounts& ranks);

/// Prints what `mylos plan` says of each mode: memory, times, the largest micro-batches, efficiencies, and notes
/// on these where they need any.
void print_tables(std::span<const train::ModePlan> plans, const train::WorkKind& work, std::size_t ranks);

}  // namespace mylos::app
