#include "parallel/launch/communicator_choice.hpp"

#include "core/base/setting_error.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/exchanges/exchange_proof.hpp"

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

CommunicatorChoice nccl_choice(const std::string& version, double bytes_per_second) {
  return {.nccl = true,
          .remark = fmt::format("ranks exchange through NCCL {}, which sums {} MiB at {:.3g} GB/s per GPU", version,
                                measured_bytes >> 20, bytes_per_second * 1e-9),
          .bytes_per_second = bytes_per_second};
}

CommunicatorChoice choice_without_nccl(std::string_view name, const std::string& obstacle) {
  if (name == "nccl") {
    throw SharedError(fmt::format("{}; {} exchanges through the hosts", obstacle, setting("communicator", "mpi")));
  }
  return {.remark = fmt::format("ranks exchange through MPI, which is slower: {}", obstacle)};
}

}  // namespace mylos::parallel
