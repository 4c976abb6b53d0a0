#pragma once

#include "core/gpu_runtime.hpp"
#include "parallel/communicator/exchanges/device_rank_sum.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace mylos::parallel {

/// Throws std::runtime_error with CUDA's error text if `error` is one.
void check_cuda(cudaError_t error, const char* what);
/// Returns true if a query's result means that work is still under way. In that case it also clears the thread's last
/// error, because CUDA may store this result there and other code would take it for an error of its own.
bool is_pending(cudaError_t state);

/// The device of this process, with the resources that all its groups share: one stream for their operations, and one
/// allocation for received data that is to be summed.
class NcclDevice {
 public:
  /// Uses the current device of the calling thread. Kokkos must be initialised.
  NcclDevice();
  ~NcclDevice();
  NcclDevice(const NcclDevice&) = delete;
  NcclDevice& operator=(const NcclDevice&) = delete;

  /// Selects the device. Each thread must call it before it uses the device.
  void use() const;
  int index() const { return device_; }
  cudaStream_t stream() const { return stream_; }

  /// Returns an event that is not in use, until it is given back.
  cudaEvent_t take_event();
  void give_back(cudaEvent_t event) noexcept;

  /// Returns true if the stream can take another launch. More than most_launches unfinished launches could fill CUDA's
  /// queue, and the next launch would block this thread, which has to notice failures of other ranks. This and the
  /// functions below are called by the communication thread.
  bool has_room();
  void note_launch();
  static constexpr std::size_t most_launches = 512;

  /// Returns at least `bytes` of memory, which operations of all groups share in stream order. If it has to grow, its
  /// contents are lost and the call waits for the device.
  std::byte* reserve(std::size_t bytes);
  /// Frees that memory. Any thread may call it while no operation is under way.
  void release();
  /// Runs sum_over_ranks on the stream. Errors: std::runtime_error if Kokkos has been finalised.
  void sum(ElementType type, const DeviceParts& parts, std::size_t count, ElementType sum_type, void* sums);
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);

  /// Releases Kokkos objects; called when Kokkos is finalised.
  void leave_kokkos();

 private:
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  std::mutex events_mutex_;
  std::vector<cudaEvent_t> events_;  ///< events not in use
  std::deque<cudaEvent_t> marks_;    ///< events in the stream, one for a fixed number of launches
  std::size_t launches_ = 0;         ///< since the last mark
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::mutex space_mutex_;
  std::optional<ExecutionSpace> space_;  ///< uses the stream
};

/// Returns a new device. Called once by the launching thread; its groups share the device.
std::shared_ptr<NcclDevice> make_nccl_device();

/// A point in a stream.
class DeviceEvent {
 public:
  explicit DeviceEvent(std::shared_ptr<NcclDevice> device)
      : device_(std::move(device)), event_(device_->take_event()) {}
  ~DeviceEvent() { device_->give_back(event_); }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  /// Marks the point after everything launched on `stream` so far.
  void record(cudaStream_t stream);
  /// Makes later launches on `stream` wait for the point.
  void hold_up(cudaStream_t stream) const;
  /// Returns true if the stream has reached the point. Errors: std::runtime_error if the device has failed.
  bool has_come() const;

 private:
  std::shared_ptr<NcclDevice> device_;
  cudaEvent_t event_;
};

}  // namespace mylos::parallel
