#include "core/kernels/gpu/device_description.hpp"

#include "core/base/error.hpp"
#include "core/kernels/cuda/driver.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <span>

namespace mylos::gpu {

DeviceSearch begin_search() {
  return {.has_driver = cuda::has_driver(),
          .needed_version = CUDART_VERSION,
          .visible = shown_variables({"CUDA_VISIBLE_DEVICES"})};
}

DeviceInfo describe(int index) {
  cudaDeviceProp properties{};
  const cudaError_t error = cudaGetDeviceProperties(&properties, index);
  if (error != cudaSuccess) fail(fmt::format("asking a GPU what it is: {}", cudaGetErrorString(error)));
  std::string id;
  for (const char byte : std::span(properties.uuid.bytes))
    id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return {properties.name, id, nvidia_gpu(10 * properties.major + properties.minor), properties.totalGlobalMem,
          static_cast<std::size_t>(index)};
}

std::string build_obstacle(const DeviceInfo& device) {
  return architecture_obstacle(device, nvidia_gpu(MYLOS_CUDA_ARCHITECTURE));
}

}  // namespace mylos::gpu
