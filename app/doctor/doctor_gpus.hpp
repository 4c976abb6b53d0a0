#pragma once

#include "app/doctor/doctor_finding.hpp"
#include "core/device.hpp"
#include "parallel/launch/launcher.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Checks GPUs, their driver, and NCCL.
namespace mylos::app {

/// GPU information of one rank.
struct GpuFacts {
  bool is_needed = !runs_on_host;  ///< whether the build needs a GPU
  std::string obstacle = {};       ///< why the build cannot use the GPUs; empty if it can
  std::vector<DeviceInfo> devices = {};
  std::string driver = {};       ///< driver version, if a driver is loaded: "535.129.03"
  std::size_t rank_of_node = 0;  ///< selects the device of the rank
};
GpuFacts gpu_facts(std::size_t rank_of_node);

/// Returns the device of the rank; null if there is none.
const DeviceInfo* own_device(const GpuFacts& facts);

Findings gpu_findings(const GpuFacts& facts);
/// Returns the findings of each rank. `devices` holds the device id of each rank, empty if the rank has none.
std::vector<Findings> shared_gpu_findings(std::span<const std::string> devices);

/// Checks the GEMM and convolution providers of a GPU build, some of which need vendor libraries. `obstacle(name)`
/// returns why a provider cannot be used; empty if it can.
Findings provider_findings(std::span<const std::string> providers,
                           const std::function<std::string(std::string_view)>& obstacle);

/// Reports the NCCL version, if the build has NCCL.
Findings nccl_findings();
/// Reports the effect of NCCL's variables. `interfaces` and `adapters` name the node's network interfaces and
/// InfiniBand adapters.
Findings nccl_environment_findings(const parallel::Environment& environment, std::span<const std::string> interfaces,
                                   std::span<const std::string> adapters);

/// Returns the sorted names of the entries of a system directory; empty if the directory does not exist.
std::vector<std::string> names_below(const char* folder);

/// Returns the version in the text of /proc/driver/nvidia/version; empty if there is none.
std::string driver_version(const std::string& text);

}  // namespace mylos::app
