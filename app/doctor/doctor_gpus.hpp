#pragma once

#include "app/doctor/doctor_finding.hpp"
#include "core/device.hpp"
#include "parallel/launch/launcher.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// GPUs, their driver, and NCCL.
namespace mylos::app {

/// What one rank sees.
struct GpuFacts {
  bool is_needed = !runs_on_host;  ///< by the build
  std::string obstacle = {};       ///< why the build cannot use what is here
  std::vector<DeviceInfo> devices = {};
  std::string driver = {};       ///< its version, where one is loaded: "535.129.03"
  std::size_t rank_of_node = 0;  ///< decides which of the devices a rank takes
};
GpuFacts gpu_facts(std::size_t rank_of_node);

/// The one that a rank takes; null where there is none.
const DeviceInfo* own_device(const GpuFacts& facts);

Findings gpu_findings(const GpuFacts& facts);
/// `devices`: the id that each rank takes, empty where it takes none. For each rank its findings.
std::vector<Findings> shared_gpu_findings(std::span<const std::string> devices);

/// Providers of products and convolutions in a build for GPUs, some of which need libraries of the vendor.
/// `obstacle(name)`: why a provider cannot be used; empty where it can.
Findings provider_findings(std::span<const std::string> providers,
                           const std::function<std::string(std::string_view)>& obstacle);

/// NCCL, where the build has it.
Findings nccl_findings();
/// What its variables would do; `interfaces` and `adapters`: names of the node's networks and InfiniBand adapters.
Findings nccl_environment_findings(const parallel::Environment& environment, std::span<const std::string> interfaces,
                                   std::span<const std::string> adapters);

/// Names below a folder of the system, in order; none where it is not there.
std::vector<std::string> names_below(const char* folder);

/// The version in the text of /proc/driver/nvidia/version; empty where there is none.
std::string driver_version(const std::string& text);

}  // namespace mylos::app
