#include "core/kernels/gpu/device_description.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>
#include <hip/hip_runtime.h>

#include <charconv>
#include <filesystem>
#include <span>
#include <string_view>

namespace mylos::gpu {
namespace {

void check(hipError_t error) {
  if (error != hipSuccess) fail(fmt::format("asking a GPU what it is: {}", hipGetErrorString(error)));
}

}  // namespace

DeviceSearch begin_search() {
  std::error_code ignored;
  return {.vendor = amd,
          .has_driver = std::filesystem::exists(amd.driver, ignored),
          .needed_version = HIP_VERSION,
          .visible = shown_variables({"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"})};
}

DeviceInfo describe(int index) {
  hipDeviceProp_t properties{};
  check(hipGetDeviceProperties(&properties, index));
  hipUUID uuid{};
  check(hipDeviceGetUuid(&uuid, index));
  // Partitions of one GPU may share its identifier, but not its address.
  std::string id =
      fmt::format("{:04x}:{:02x}:{:02x}-", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
  for (const char byte : std::span(uuid.bytes)) id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  constexpr std::string_view prefix = "gfx";
  const std::string_view architecture = properties.gcnArchName;  // "gfx90a:sramecc+:xnack-"
  int number = 0;
  if (architecture.starts_with(prefix)) {
    std::from_chars(architecture.data() + prefix.size(), architecture.data() + architecture.size(), number, 16);
  }
  return {.name = properties.name,
          .id = id,
          .architecture = amd_gpu(number),
          .memory = properties.totalGlobalMem,
          .index = static_cast<std::size_t>(index)};
}

std::string build_obstacle(const DeviceInfo& device) {
  return architecture_obstacle(device, amd_gpu(MYLOS_HIP_ARCHITECTURE));
}

}  // namespace mylos::gpu
