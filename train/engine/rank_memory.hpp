#pragma once

#include "train/engine/rank_layout.hpp"

#include <cstddef>

namespace mylos::train {

/// Bytes that each rank may still take where kernels compute: those of a node, or of a device, share what is free
/// there, and the least of all ranks counts for all. Collective.
std::size_t available_on_every_rank(const Ranks& ranks);

/// What plans need to know of the ranks, of which this one has `threads` threads. Collective.
RankCounts count_with_threads(const Ranks& ranks, std::size_t threads);

}  // namespace mylos::train
