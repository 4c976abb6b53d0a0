#include "parallel/launch/communicator_choice.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::parallel {

CommunicatorChoice choose_communicator(const std::vector<RankPlace>& places, bool validated) {
  const bool on_devices = std::ranges::none_of(places, [](const RankPlace& place) { return place.device.empty(); });
  if (places.size() < 2 || !on_devices) return {};
  const auto lacking = std::ranges::find(places, false, &RankPlace::has_nccl);
  if (lacking == places.end()) {
    if (validated) return {.nccl = true, .remark = "ranks exchange through NCCL"};
    return {.remark =
                "ranks exchange through MPI; --communicator nccl exchanges directly between GPUs, and has not been "
                "validated on any GPU yet (docs/gpu.md)"};
  }
  const auto found = std::ranges::find(places, true, &RankPlace::has_nccl);
  if (found == places.end())
    return {.remark = "ranks exchange through MPI: NCCL was not found (mylos doctor says why)"};
  return {.remark = fmt::format("ranks exchange through MPI: NCCL was found on rank {}, and not on rank {} on {}",
                                found - places.begin(), lacking - places.begin(), lacking->host)};
}

}  // namespace mylos::parallel
