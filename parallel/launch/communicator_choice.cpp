#include "parallel/launch/communicator_choice.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::parallel {

CommunicatorChoice choose_communicator(const std::vector<RankPlacement>& placements) {
  const bool on_devices =
      std::ranges::none_of(placements, [](const RankPlacement& placement) { return placement.device.empty(); });
  if (placements.size() < 2 || !on_devices) return {};
  const auto lacking = std::ranges::find(placements, false, &RankPlacement::has_nccl);
  if (lacking == placements.end()) return {.nccl = true};
  const auto found = std::ranges::find(placements, true, &RankPlacement::has_nccl);
  if (found == placements.end())
    return {.remark = "ranks exchange through MPI: NCCL was not found (mylos doctor shows why)"};
  return {.remark = fmt::format("ranks exchange through MPI: NCCL was found on rank {}, and not on rank {} on {}",
                                found - placements.begin(), lacking - placements.begin(), lacking->host)};
}

}  // namespace mylos::parallel
