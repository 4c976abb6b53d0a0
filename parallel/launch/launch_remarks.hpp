#pragma once

#include "parallel/launch/launch.hpp"
#include "parallel/launch/launcher.hpp"

#include <span>
#include <string>

/// What a user should know about how the ranks were launched.
namespace mylos::parallel {

/// Returns a text that names two ranks whose processors run different kernels, which round differently; empty if all
/// ranks have the same kind of processor.
std::string differing_processors(std::span<const RankPlacement> placements);

/// Returns a line about GPUs that ranks see and none computes on, with the way to launch one rank on each; empty if
/// there are none.
std::string unused_devices(std::span<const RankPlacement> placements, const Environment& environment);

}  // namespace mylos::parallel
