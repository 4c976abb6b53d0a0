#pragma once

#include "parallel/launch/launch.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace mylos::parallel {

/// Returns the choice of --communicator auto before the devices are connected: NCCL if every rank has a device and has
/// found the library; otherwise MPI, with a remark that names a rank that lacks the library. There is no remark for a
/// single rank, or without devices. Each rank must have its own device (check_devices_apart).
CommunicatorChoice choose_communicator(const std::vector<RankPlacement>& placements);

/// Returns the choice of NCCL of this version, over whose connections a rank sends so many bytes per second.
CommunicatorChoice nccl_choice(const std::string& version, double bytes_per_second);

/// Returns the choice of --communicator `name` if the devices cannot be connected because of `obstacle`, the same on
/// all ranks: MPI for "auto". Errors: SharedError for "nccl".
CommunicatorChoice choice_without_nccl(std::string_view name, const std::string& obstacle);

}  // namespace mylos::parallel
