#pragma once

#include "parallel/launch/launch.hpp"

#include <string>
#include <vector>

namespace mylos::parallel {

/// Whether a committed table of bench/results shows that NCCL passed scripts/validate-gpu. tests/bench compares the
/// two.
inline constexpr bool nccl_is_validated = false;

/// The communicator that --communicator auto selects.
struct CommunicatorChoice {
  bool nccl = false;
  std::string remark;  ///< one line for the run's log; empty where there is nothing to choose
};

/// Takes NCCL where `validated` and every rank has a device and found the library, MPI otherwise. The remark says how
/// to ask for NCCL where MPI is taken although every rank has it, and which rank lacks it where only some do.
/// `placements` are those of at least 2 ranks, on devices of their own (check_devices_apart).
CommunicatorChoice choose_communicator(const std::vector<RankPlacement>& placements,
                                       bool validated = nccl_is_validated);

}  // namespace mylos::parallel
