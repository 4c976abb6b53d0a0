#pragma once

#include "parallel/communicator/nccl/nccl_version.hpp"
#include "parallel/launch/launch.hpp"
#include "parallel/launch/launcher.hpp"

#include <filesystem>
#include <functional>
#include <span>
#include <string>

/// Lines for the user about how the ranks were launched, and what they run on.
namespace mylos::parallel {

/// Returns a text that names two ranks whose processors run different kernels, which round differently; empty if all
/// ranks have the same kind of processor.
std::string differing_processors(std::span<const RankPlacement> placements);

/// Returns a line about GPUs that ranks see and none computes on, with the way to launch one rank on each; empty if
/// there are none.
std::string unused_devices(std::span<const RankPlacement> placements, const Environment& environment);

/// Returns whether the loader finds a library of this name.
using LoadsLibrary = std::function<bool(const std::string& name)>;
bool loads_library(const std::string& name);

/// Returns a line about the network over which NCCL exchanges between nodes: its plugin, the adapters that the system
/// lists in the directory `infiniband`, or TCP. NCCL looks for them in this order.
std::string nccl_network(const Environment& environment, const LoadsLibrary& loads = loads_library,
                         const std::filesystem::path& infiniband = "/sys/class/infiniband",
                         const NcclNames& nccl = own_nccl);

/// Returns a line if NCCL would use TCP between nodes: they have Slingshot adapters, which the system lists in the
/// directory `slingshot`, and NCCL's plugin for libfabric cannot be loaded. Otherwise empty.
std::string nccl_over_tcp(const Environment& environment, const LoadsLibrary& loads = loads_library,
                          const std::filesystem::path& slingshot = "/sys/class/cxi", const NcclNames& nccl = own_nccl);

}  // namespace mylos::parallel
