#include "core/device.hpp"

#include "core/base/error.hpp"
#include "core/gpu_runtime.hpp"
#include "core/kernels/gpu/device_description.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace mylos {
namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(fmt::format("{}: {}", what, cudaGetErrorString(error)));
}

void fail_where(const std::string& obstacle) {
  if (!obstacle.empty()) fail(obstacle);
}

/// Returns the number of devices. Errors: as for usable_devices.
int count_devices() {
  DeviceSearch search = gpu::begin_search();
  cudaError_t error = cudaSuccess;
  if (search.has_driver) {
    error = cudaGetDeviceCount(&search.devices);
    search.driver_serves = error != cudaErrorInsufficientDriver;
  }
  if (!search.driver_serves) check(cudaDriverGetVersion(&search.driver_version), "the version of the driver");
  if (error == cudaSuccess || error == cudaErrorNoDevice || !search.driver_serves) fail_where(search_obstacle(search));
  check(error, "counting GPUs");
  return search.devices;
}

std::shared_ptr<void> make_event(unsigned flags) {
  cudaEvent_t made = nullptr;
  check(cudaEventCreateWithFlags(&made, flags), "making an event");
  return std::shared_ptr<void>(made, [](void* event) { cudaEventDestroy(static_cast<cudaEvent_t>(event)); });
}

cudaEvent_t event_of(const std::shared_ptr<void>& handle) { return static_cast<cudaEvent_t>(handle.get()); }

void record(const std::shared_ptr<void>& event, const ExecutionSpace& space) {
  check(cudaEventRecord(event_of(event), space.cuda_stream()), "recording an event");
}

void wait_for(const std::shared_ptr<void>& event) {
  check(cudaEventSynchronize(event_of(event)), "waiting for what was launched");
}

struct DeviceMemory {
  std::size_t available = 0, total = 0;
};

DeviceMemory memory_of_device() {
  DeviceMemory memory;
  check(cudaMemGetInfo(&memory.available, &memory.total), "asking a GPU for its free memory");
  return memory;
}

/// Arguments of the kinds that kernels take. Each moves those behind it.
struct KernelArguments {
  ConstVector<float> vector;
  Matrix<float> matrix;
  std::uint64_t last;
};

/// The values in KernelArguments, as the host or a kernel reads them.
struct ArgumentValues {
  std::uint64_t vector, elements, matrix, rows, columns, last;

  bool operator==(const ArgumentValues&) const = default;
};

KOKKOS_FUNCTION ArgumentValues values_of(const KernelArguments& arguments) {
  return {reinterpret_cast<std::uint64_t>(arguments.vector.data()),
          arguments.vector.extent(0),
          reinterpret_cast<std::uint64_t>(arguments.matrix.data()),
          arguments.matrix.extent(0),
          arguments.matrix.extent(1),
          arguments.last};
}

__global__ void read_arguments(KernelArguments arguments, ArgumentValues* values) { *values = values_of(arguments); }

}  // namespace

std::vector<DeviceInfo> usable_devices() {
  std::vector<DeviceInfo> devices;
  const int count = count_devices();
  for (int index = 0; index < count; ++index) devices.push_back(gpu::describe(index));
  const std::string obstacle = gpu::build_obstacle(devices.front());
  // An old device next to others may be there for a display only.
  std::erase_if(devices, [](const DeviceInfo& device) { return !gpu::build_obstacle(device).empty(); });
  if (devices.empty()) fail(obstacle);
  return devices;
}

std::optional<DeviceInfo> device_in_use() {
  int index = 0;
  check(cudaGetDevice(&index), "asking which GPU is in use");
  return gpu::describe(index);
}

void check_kernel_arguments() {
  const auto values = uninitialized<ArgumentValues>("mylos::argument_values", 1);
  // The views are only passed; nothing is read or written through them.
  auto* const data = reinterpret_cast<float*>(values.data());
  const KernelArguments arguments{ConstVector<float>(data, 3), Matrix<float>(data, 5, 7), 11};
  const ExecutionSpace space;
  read_arguments<<<1, 1, 0, space.cuda_stream()>>>(arguments, values.data());
  check(cudaGetLastError(), "launching a kernel");
  ArgumentValues read{};
  check(cudaMemcpyAsync(&read, values.data(), sizeof read, cudaMemcpyDeviceToHost, space.cuda_stream()),
        "copying from a GPU");
  check(cudaStreamSynchronize(space.cuda_stream()), "waiting for a kernel");
  if (read == values_of(arguments)) return;
  fail(
      "kernels of this build find their arguments where the host did not write them: nvcc lays out Kokkos' views "
      "differently in its two passes, as that of CUDA 13 does with Kokkos 4.7.0; build with Kokkos 4.7.2, or 5.0 and "
      "later");
}

std::size_t free_device_memory() { return memory_of_device().available; }

std::size_t used_device_memory() {
  const DeviceMemory memory = memory_of_device();
  return memory.total - memory.available;
}

ExecutionSpace make_queue() { return Kokkos::Experimental::partition_space(ExecutionSpace(), 1)[0]; }

void LaunchMark::set(const ExecutionSpace& space) {
  if (event_ == nullptr) event_ = make_event(cudaEventDisableTiming);
  record(event_, space);
}

void LaunchMark::wait() const {
  if (event_ != nullptr) wait_for(event_);
}

void LaunchMark::hold_up(const ExecutionSpace& space) const {
  if (event_ == nullptr) return;
  check(cudaStreamWaitEvent(space.cuda_stream(), event_of(event_), 0), "holding launches up");
}

void LaunchTime::set(const ExecutionSpace& space) {
  if (moment_ == nullptr) moment_ = make_event(cudaEventDefault);
  record(moment_, space);
}

double LaunchTime::seconds_since(const LaunchTime& earlier) const {
  wait_for(moment_);
  float milliseconds = 0.0f;
  check(cudaEventElapsedTime(&milliseconds, event_of(earlier.moment_), event_of(moment_)), "timing launches");
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace mylos
