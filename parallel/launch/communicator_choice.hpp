#pragma once

#include "parallel/launch/launch.hpp"

#include <vector>

namespace mylos::parallel {

/// Returns the choice of --communicator auto before the devices are connected: NCCL if every rank has a device and has
/// found the library; otherwise MPI, with a remark that names a rank that lacks the library. There is no remark for a
/// single rank, or without devices. Each rank must have its own device (check_devices_apart).
CommunicatorChoice choose_communicator(const std::vector<RankPlacement>& placements);

}  // namespace mylos::parallel
