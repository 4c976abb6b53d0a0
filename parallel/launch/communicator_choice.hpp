#pragma once

#include "parallel/launch/launch.hpp"

#include <string>
#include <vector>

namespace mylos::parallel {

/// True once a committed table in bench/results shows that NCCL passed scripts/validate-gpu on several GPUs (its part
/// "nccl"). tests/bench compares the two.
inline constexpr bool nccl_is_validated = false;

/// The communicator that --communicator auto selects.
struct CommunicatorChoice {
  bool nccl = false;
  std::string remark;  ///< one line for the run's log; empty if there is no choice
};

/// Selects NCCL if `validated` is true and every rank has a device and has found the library; otherwise MPI. If MPI is
/// selected although every rank has NCCL, the remark says how to ask for NCCL; if only some ranks have it, the remark
/// names one that lacks it. `placements` must be of at least 2 ranks, each on its own device (check_devices_apart).
CommunicatorChoice choose_communicator(const std::vector<RankPlacement>& placements,
                                       bool validated = nccl_is_validated);

}  // namespace mylos::parallel
