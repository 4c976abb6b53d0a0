#pragma once

#include "core/device.hpp"
#include "parallel/communicator/device_rank_sum.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace mylos::parallel {

/// Errors: std::runtime_error with CUDA's words where `error` is one.
void check_cuda(cudaError_t error, const char* what);
/// Whether a query says that work is still under way. Clears the thread's last error, where CUDA keeps that answer and
/// where other code would take it for an error of its own.
bool is_pending(cudaError_t state);

/// The device of this process, and what all its groups use of it: one stream for their operations, one memory for what
/// is received to be summed.
class NcclDevice {
 public:
  /// The current device of the calling thread; Kokkos has begun.
  NcclDevice();
  ~NcclDevice();
  NcclDevice(const NcclDevice&) = delete;
  NcclDevice& operator=(const NcclDevice&) = delete;

  /// Before a thread's first call for it.
  void use() const;
  int index() const { return device_; }
  cudaStream_t stream() const { return stream_; }

  /// An event that is not in use, until it is given back.
  cudaEvent_t take_event();
  void give_back(cudaEvent_t event) noexcept;

  /// Whether the stream takes another launch: more than most_launches that have not ended could fill CUDA's queue, and
  /// the next launch would block this thread, which has to see other ranks fail. Of the communication thread, as what
  /// follows.
  bool has_room();
  void note_launch();
  static constexpr std::size_t most_launches = 512;

  /// Memory for `bytes` at least, which operations of all groups share in the order of the stream. What it held is lost
  /// where it has to grow, which waits for the device.
  std::byte* reserve(std::size_t bytes);
  /// sum_over_ranks on the stream. Errors: std::runtime_error where Kokkos has ended.
  void sum(ElementType type, const DeviceParts& parts, std::size_t count, ElementType sum_type, void* sums);
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);

  /// Ends what is Kokkos' own; called as Kokkos ends.
  void leave_kokkos();

 private:
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  std::mutex events_mutex_;
  std::vector<cudaEvent_t> events_;  ///< that are not in use
  std::deque<cudaEvent_t> marks_;    ///< in the stream, one in so many launches
  std::size_t launches_ = 0;         ///< since the last mark
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::mutex space_mutex_;
  std::optional<ExecutionSpace> space_;  ///< over the stream
};

/// Made once for the groups that share it, by the caller's thread.
std::shared_ptr<NcclDevice> make_nccl_device();

/// A point of a stream.
class DeviceEvent {
 public:
  explicit DeviceEvent(std::shared_ptr<NcclDevice> device)
      : device_(std::move(device)), event_(device_->take_event()) {}
  ~DeviceEvent() { device_->give_back(event_); }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  /// Marks the point behind everything that was launched on `stream` so far.
  void record(cudaStream_t stream);
  /// Makes what is launched on `stream` from now on wait for the point.
  void hold_up(cudaStream_t stream) const;
  /// Returns whether the stream has reached the point. Errors: std::runtime_error where the device has failed.
  bool has_come() const;

 private:
  std::shared_ptr<NcclDevice> device_;
  cudaEvent_t event_;
};

}  // namespace mylos::parallel
