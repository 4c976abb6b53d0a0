#pragma once

#include "train/engine/rank_layout.hpp"

#include <cstddef>

namespace mylos::train {

/// Returns the bytes that every rank may still allocate where kernels compute: the minimum over ranks. Ranks on the
/// same node or device share its free memory equally. Collective.
std::size_t available_on_every_rank(const Ranks& ranks);

/// Returns the rank counts that plans need; this rank has `threads` threads. Collective.
RankCounts count_with_threads(const Ranks& ranks, std::size_t threads);

}  // namespace mylos::train
