#pragma once

#include "parallel/launch/launch.hpp"

#include <span>
#include <string>

/// Describes the placement of the ranks for a run's log.
namespace mylos::train {

/// Returns newline-terminated lines, each with a name and its text: the batch job, if there is one, and for each rank
/// its node, its GPU and the processors that it may run on. Adjacent ranks with the same text share a line. If the
/// ranks are in different jobs, each rank's line names its job. Returns an empty string for a single rank without job
/// and GPU.
std::string rank_lines(std::span<const parallel::RankPlacement> placements);

}  // namespace mylos::train
