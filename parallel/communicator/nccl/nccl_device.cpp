#include "parallel/communicator/nccl/nccl_device.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/nccl/nccl_streams.hpp"

#include <fmt/format.h>

namespace mylos::parallel {
namespace {

/// Launches per mark in the stream.
constexpr std::size_t launches_of_mark = 64;
static_assert(NcclDevice::most_launches % launches_of_mark == 0);

}  // namespace

void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(fmt::format("CUDA: {}: {}", what, cudaGetErrorString(error)));
}

bool is_pending(cudaError_t state) {
  if (state != cudaErrorNotReady) return false;
  cudaGetLastError();
  return true;
}

NcclDevice::NcclDevice() {
  check_cuda(cudaGetDevice(&device_), "asking for the device in use");
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for the priorities of streams");
  // Communication has a higher priority, because other ranks wait for it.
  check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "making a stream");
  space_.emplace(space_over(stream_));
}

NcclDevice::~NcclDevice() {
  // space_ is still set if Kokkos has not been finalised. Errors are ignored: the driver may already be gone.
  cudaSetDevice(device_);
  space_.reset();
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  for (const cudaEvent_t event : marks_) cudaEventDestroy(event);
  if (memory_ != nullptr) cudaFree(memory_);
  cudaStreamDestroy(stream_);
}

void NcclDevice::use() const { check_cuda(cudaSetDevice(device_), "choosing the device"); }

cudaEvent_t NcclDevice::take_event() {
  {
    const std::lock_guard lock(events_mutex_);
    if (!events_.empty()) {
      const cudaEvent_t event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return event;
}

void NcclDevice::give_back(cudaEvent_t event) noexcept {
  const std::lock_guard lock(events_mutex_);
  events_.push_back(event);
}

bool NcclDevice::has_room() {
  while (!marks_.empty()) {
    const cudaError_t state = cudaEventQuery(marks_.front());
    if (is_pending(state)) break;
    check_cuda(state, "on the device");
    give_back(marks_.front());
    marks_.pop_front();
  }
  return marks_.size() * launches_of_mark < most_launches;
}

void NcclDevice::note_launch() {
  if (++launches_ < launches_of_mark) return;
  launches_ = 0;
  const cudaEvent_t mark = take_event();
  marks_.push_back(mark);
  check_cuda(cudaEventRecord(mark, stream_), "recording an event");
}

std::byte* NcclDevice::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return memory_;
  release();
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), "memory for what ranks exchange");
  memory_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
  return memory_;
}

void NcclDevice::release() {
  if (memory_ != nullptr) check_cuda(cudaFree(memory_), "freeing memory for what ranks exchange");
  memory_ = nullptr;
  bytes_ = 0;
}

void NcclDevice::sum(ElementType type, const DeviceParts& parts, std::size_t count, ElementType sum_type, void* sums) {
  const std::lock_guard lock(space_mutex_);
  ensure(space_.has_value(), "Kokkos has ended before a sum over ranks");
  launch_sum(*space_, stream_, type, parts, count, sum_type, sums);
}

void NcclDevice::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copying");
}

void NcclDevice::leave_kokkos() {
  const std::lock_guard lock(space_mutex_);
  space_.reset();
}

std::shared_ptr<NcclDevice> make_nccl_device() {
  auto device = std::make_shared<NcclDevice>();
  Kokkos::push_finalize_hook([weak = std::weak_ptr(device)] {
    if (const std::shared_ptr<NcclDevice> still_there = weak.lock()) still_there->leave_kokkos();
  });
  return device;
}

void DeviceEvent::record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "recording an event"); }

void DeviceEvent::hold_up(cudaStream_t stream) const {
  check_cuda(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event");
}

bool DeviceEvent::has_come() const {
  const cudaError_t state = cudaEventQuery(event_);
  if (is_pending(state)) return false;
  check_cuda(state, "on the device");
  return true;
}

}  // namespace mylos::parallel
