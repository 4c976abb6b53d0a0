#include "core/device.hpp"

#include "core/error.hpp"
#include "core/kernels/cuda/driver.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstdlib>
#include <span>

namespace mylos {
namespace {

/// "13.0" of 13000.
std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string capability_text(int capability) { return fmt::format("{}.{}", capability / 10, capability % 10); }

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(fmt::format("{}: {}", what, cudaGetErrorString(error)));
}

/// Errors: as usable_devices.
int count_devices() {
  if (!cuda::has_driver()) {
    fail(
        "this build computes on NVIDIA GPUs, and their driver (libcuda.so.1) is not on this machine; run it on a "
        "node with GPUs, or use a build for the CPU");
  }
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    check(cudaDriverGetVersion(&driver), "the version of the NVIDIA driver");
    fail(
        fmt::format("the NVIDIA driver here serves CUDA {} and this build needs {}; ask for a newer driver, or build "
                    "with an older CUDA toolkit",
                    version_text(driver), version_text(CUDART_VERSION)));
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    fail(
        fmt::format("no GPU is visible here{}; ask the scheduler for one (--gpus-per-task=1), or use a build for the "
                    "CPU",
                    visible == nullptr ? "" : fmt::format(" (CUDA_VISIBLE_DEVICES is '{}')", visible)));
  }
  check(error, "counting GPUs");
  return count;
}

DeviceInfo describe(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "asking a GPU what it is");
  std::string id;
  for (const char byte : std::span(properties.uuid.bytes))
    id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return {properties.name, id, 10 * properties.major + properties.minor, properties.totalGlobalMem};
}

struct DeviceMemory {
  std::size_t available = 0, total = 0;
};

DeviceMemory memory_of_device() {
  DeviceMemory memory;
  check(cudaMemGetInfo(&memory.available, &memory.total), "asking a GPU for its free memory");
  return memory;
}

}  // namespace

std::vector<DeviceInfo> usable_devices() {
  std::vector<DeviceInfo> devices;
  const int count = count_devices();
  for (int index = 0; index < count; ++index) {
    devices.push_back(describe(index));
    const DeviceInfo& device = devices.back();
    if (device.capability < MYLOS_CUDA_ARCHITECTURE) {
      fail(
          fmt::format("GPU {} ({}) has compute capability {} and this build is for {} and later; build with "
                      "-DMYLOS_CUDA_ARCHITECTURE={}",
                      index, device.name, capability_text(device.capability), capability_text(MYLOS_CUDA_ARCHITECTURE),
                      device.capability));
    }
  }
  return devices;
}

std::size_t free_device_memory() { return memory_of_device().available; }

std::size_t used_device_memory() {
  const DeviceMemory memory = memory_of_device();
  return memory.total - memory.available;
}

void LaunchMark::set(const ExecutionSpace& space) {
  if (event_ == nullptr) {
    cudaEvent_t made = nullptr;
    check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "making an event");
    event_ = std::shared_ptr<void>(made, [](void* event) { cudaEventDestroy(static_cast<cudaEvent_t>(event)); });
  }
  check(cudaEventRecord(static_cast<cudaEvent_t>(event_.get()), space.cuda_stream()), "recording an event");
}

void LaunchMark::wait() const {
  if (event_ == nullptr) return;
  check(cudaEventSynchronize(static_cast<cudaEvent_t>(event_.get())), "waiting for what was launched");
}

}  // namespace mylos
