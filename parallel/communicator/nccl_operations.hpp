#pragma once

#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/device_rank_sum.hpp"
#include "parallel/communicator/nccl_library.hpp"

#include <cuda_runtime.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

/// Operations over NCCL, as the communication thread carries them out: each is launched when the one before has ended
/// on the device, so that no two of them wait for other ranks at a time, and stays under way until it has ended itself.
namespace mylos::parallel {

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

  /// Memory for `bytes` at least, which operations of all groups share. What it held is lost where it has to grow.
  std::byte* reserve(std::size_t bytes);

  /// sum_over_ranks on the stream. Errors: std::runtime_error where Kokkos has ended.
  void sum(ElementType type, const RankParts& parts, std::size_t count, ElementType sum_type, void* sums);

  /// Ends what is Kokkos' own; called as Kokkos ends.
  void leave_kokkos();

 private:
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  std::mutex events_mutex_;
  std::vector<cudaEvent_t> events_;  ///< that are not in use
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

  /// What was launched on `stream` before.
  void record(cudaStream_t stream);
  /// What is launched on `stream` from here on begins after it.
  void hold_up(cudaStream_t stream) const;
  /// What it was recorded after has ended. Errors: std::runtime_error where the device has failed.
  bool has_come() const;

 private:
  std::shared_ptr<NcclDevice> device_;
  cudaEvent_t event_;
};

/// A group's NCCL communicator. Calls that wait for other ranks return at once, and settled() tells.
class NcclLink {
 public:
  NcclLink(std::shared_ptr<NcclDevice> device, std::size_t rank, std::size_t ranks)
      : library_(nccl_library()), device_(std::move(device)), rank_(rank), ranks_(ranks) {}
  ~NcclLink();
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  const std::shared_ptr<NcclDevice>& device() const { return device_; }
  std::size_t rank() const { return rank_; }
  std::size_t ranks() const { return ranks_; }

  void begin(const ncclUniqueId& id);
  /// NCCL has launched all that it was asked for. Errors: std::runtime_error where it has failed since.
  bool settled() const;
  /// Ends what is under way without the other ranks. Nothing else may follow.
  void abort() noexcept;

  void all_reduce(ElementType type, void* data, std::size_t count);
  void reduce_scatter(ElementType type, const void* all, void* mine, std::size_t count);
  void all_gather(const void* mine, void* all, std::size_t bytes);
  void broadcast(void* data, std::size_t bytes, std::size_t root);

  struct Message {
    std::size_t peer = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  /// All at once. Empty ones are left out, on both sides.
  void exchange(const std::vector<Message>& sent, const std::vector<Message>& received);

 private:
  void check(ncclResult_t result, const char* what) const { check_nccl(library_, result, communicator_, what); }

  const NcclLibrary& library_;
  std::shared_ptr<NcclDevice> device_;
  std::size_t rank_, ranks_;
  ncclComm_t communicator_ = nullptr;
};

/// Makes the NCCL communicator of a group, when all its ranks have come.
class NcclConnect final : public QueuedOperation {
 public:
  NcclConnect(OperationName name, std::shared_ptr<NcclLink> link, const ncclUniqueId& id)
      : QueuedOperation(std::move(name)), link_(std::move(link)), id_(id) {}

  Progress advance() override;
  void give_up() noexcept override { link_->abort(); }

 private:
  std::shared_ptr<NcclLink> link_;
  ncclUniqueId id_;
  bool begun_ = false;
};

/// Launches `steps` on the device's stream, each when NCCL has launched the ones before.
class NcclOperation final : public QueuedOperation {
 public:
  using Step = std::function<void()>;

  /// Begins after what was launched on `space`.
  NcclOperation(OperationName name, std::shared_ptr<NcclLink> link, const ExecutionSpace& space,
                std::vector<Step> steps);

  Progress advance() override;
  void give_up() noexcept override;
  /// Returns when all steps are launched: what follows on `space` waits for them on the device.
  void wait(const ExecutionSpace& space) override;

 private:
  enum class Stage : int { launching, launched, given_up };

  void set(Stage stage);

  std::shared_ptr<NcclLink> link_;
  DeviceEvent ready_, ended_;
  std::vector<Step> steps_;
  std::size_t next_step_ = 0;
  bool begun_ = false;
  std::atomic<Stage> stage_{Stage::launching};
};

}  // namespace mylos::parallel
