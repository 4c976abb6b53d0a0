#pragma once

#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/nccl/nccl_device.hpp"
#include "parallel/communicator/nccl/nccl_library.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

/// Operations over NCCL, as the communication thread runs them. Each is launched after the previous one was launched.
/// The device's stream keeps their order, so only one at a time waits for other ranks. An operation is under way until
/// it has ended on the device.
namespace mylos::parallel {

/// A group's NCCL communicator. It is non-blocking: calls that wait for other ranks return at once, and is_ready()
/// reports their end. abort() and destroy() block, because NCCL then frees device memory, which waits for all kernels
/// of the device, those of other links too. They therefore run in a thread of their own, after which no other call may
/// follow.
class NcclLink {
 public:
  NcclLink(std::shared_ptr<NcclDevice> device, std::size_t rank, std::size_t ranks)
      : library_(nccl_library()), device_(std::move(device)), rank_(rank), ranks_(ranks) {}
  /// Aborts the communicator unless it has ended.
  ~NcclLink() { abort(); }
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  const std::shared_ptr<NcclDevice>& device() const { return device_; }
  std::size_t rank() const { return rank_; }
  std::size_t ranks() const { return ranks_; }

  void begin(const ncclUniqueId& id);
  /// Returns true if NCCL has launched everything requested so far. Errors: std::runtime_error if it has failed since.
  bool is_ready() const;
  /// Ends operations under way without the other ranks, and the communicator.
  void abort() noexcept { end(library_.comm_abort); }
  /// Begins to end the communicator together with the other ranks. destroy() may be called when is_ready().
  void finalize();
  void destroy() noexcept { end(library_.comm_destroy); }
  bool is_ending() const { return is_ending_; }
  /// Returns true if abort() or destroy() has ended, and everything launched on the device's stream before. Also true
  /// if the communicator was never created.
  bool is_ended() const { return communicator_ == nullptr || is_ended_; }

  void all_reduce(ElementType type, void* data, std::size_t count);
  void reduce_scatter(ElementType type, const void* all, void* mine, std::size_t count);
  void all_gather(const void* mine, void* all, std::size_t bytes);
  void broadcast(void* data, std::size_t bytes, std::size_t root);

  struct Message {
    std::size_t peer = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  /// Sends and receives all messages together. Empty messages are skipped on both sides.
  void exchange(const std::vector<Message>& sent, const std::vector<Message>& received);
  /// Makes `calls`, of collectives above, as one group: NCCL launches them together when the last has been made. All
  /// ranks must form the same groups.
  void group(const std::vector<std::function<void()>>& calls);

 private:
  /// Runs `calls` between the beginning and the end of a group.
  template <class Calls>
  void in_group(const char* what, const Calls& calls);
  void end(decltype(NcclLibrary::comm_abort) call) noexcept;
  void check(ncclResult_t result, const char* what) const { check_nccl(library_, result, communicator_, what); }

  const NcclLibrary& library_;
  std::shared_ptr<NcclDevice> device_;
  std::size_t rank_, ranks_;
  ncclComm_t communicator_ = nullptr;
  bool is_ending_ = false;
  std::atomic<bool> is_ended_{false};
  std::jthread ending_;  ///< declared last: it uses the other members
};

/// Creates the NCCL communicator of a group; done when all its ranks have joined.
class NcclConnect final : public QueuedOperation {
 public:
  NcclConnect(OperationName name, std::shared_ptr<NcclLink> link, const ncclUniqueId& id)
      : QueuedOperation(std::move(name)), link_(std::move(link)), id_(id) {}

  Progress advance() override;
  void stop() noexcept override { link_->abort(); }
  bool has_stopped() const noexcept override { return link_->is_ended(); }

 private:
  std::shared_ptr<NcclLink> link_;
  ncclUniqueId id_;
  bool begun_ = false;
};

/// Ends the NCCL communicator of a group, together with its other ranks if they come soon; if `alone`, without them.
/// Never fails: an error of NCCL here follows from one that an earlier operation or another rank reports.
class NcclDisconnect final : public QueuedOperation {
 public:
  NcclDisconnect(OperationName name, std::shared_ptr<NcclLink> link, bool alone = false)
      : QueuedOperation(std::move(name)), link_(std::move(link)), alone_(alone) {}

  Progress advance() override;
  void stop() noexcept override { link_->abort(); }
  bool has_stopped() const noexcept override { return link_->is_ended(); }

 private:
  std::shared_ptr<NcclLink> link_;
  bool alone_;
  std::optional<std::chrono::steady_clock::time_point> finalized_at_;
};

/// Launches steps on the device's stream, each when NCCL has launched the previous ones.
class NcclOperation final : public QueuedOperation {
 public:
  using Step = std::function<void()>;
  /// Called by the communication thread when the operation begins.
  using MakeSteps = std::function<std::vector<Step>()>;

  /// The operation begins after everything launched on `space` so far.
  NcclOperation(OperationName name, std::shared_ptr<NcclLink> link, const ExecutionSpace& space, MakeSteps make_steps);

  Progress advance() override;
  const void* stream() const override { return link_->device()->stream(); }
  void stop() noexcept override { link_->abort(); }
  bool has_stopped() const noexcept override { return link_->is_ended(); }
  void give_up() noexcept override { set(Stage::given_up); }
  /// Returns when all steps have been launched; later launches on `space` wait for them on the device.
  void wait(const ExecutionSpace& space) override;
  void discard(const ExecutionSpace& space) override { wait(space); }

 private:
  enum class Stage : int { launching, launched, given_up };

  void set(Stage stage);

  std::shared_ptr<NcclLink> link_;
  DeviceEvent ready_, ended_;
  MakeSteps make_steps_;
  std::vector<Step> steps_;
  std::size_t next_step_ = 0;
  bool begun_ = false;
  std::atomic<Stage> stage_{Stage::launching};
};

}  // namespace mylos::parallel
