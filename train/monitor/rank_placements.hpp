#pragma once

#include "parallel/launch/launch.hpp"

#include <span>
#include <string>

/// What a run's log says of where its ranks are.
namespace mylos::train {

/// Lines of a name and what there is to say of it, each ended: the batch job, where there is one, and for each rank its
/// node, its GPU and the processors that it may run on. Neighbouring ranks of which the same is to be said share a
/// line; a job that not all ranks have is told with each. Nothing of one rank without job and GPU.
std::string rank_lines(std::span<const parallel::RankPlacement> placements);

}  // namespace mylos::train
