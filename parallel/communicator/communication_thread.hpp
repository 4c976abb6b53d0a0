#pragma once

#include "parallel/communicator/communicator.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

/// The thread of a process that communicates with other ranks. It never blocks inside the communication library.
/// Instead it polls the operations under way and yields its core in between, so it does not starve compute threads, and
/// it notices when a rank does not join. Operations that a device stream keeps in order are launched ahead, and those
/// on host memory run beside them.
namespace mylos::parallel {

/// The name of an operation in messages to users and to other ranks.
struct OperationName {
  std::string what;
  std::size_t bytes = 0;
  std::uint64_t group = 0;     ///< identifies the group of ranks that take part
  std::uint64_t sequence = 0;  ///< number of earlier operations of this group
};

class QueuedOperation : public Event::Operation {
 public:
  /// `launched`: the operation only has to end, and the next operation of the same stream may begin.
  enum class Progress { done, moved, waiting, launched };

  explicit QueuedOperation(OperationName name) : name_(std::move(name)) {}

  /// Advances as far as possible without waiting. Called only by the communication thread. May be called again after it
  /// returned `done`, while earlier operations are still under way.
  virtual Progress advance() = 0;
  /// The device stream that runs this operation, or null. Operations of a stream run in launch order.
  virtual const void* stream() const { return nullptr; }
  /// Returns true if the operation uses host memory only. Then it runs beside operations on a stream, and after earlier
  /// ones without a stream. An operation that has no stream and returns false runs alone.
  virtual bool uses_host_memory_only() const { return false; }
  /// End this operation without the other ranks, before it fails. First stop() is called for all operations under way,
  /// and begins to end them; when has_stopped() returns true for all, give_up() is called for all. None of them waits.
  /// Called only by the communication thread.
  virtual void stop() noexcept {}
  virtual bool has_stopped() const noexcept { return true; }
  virtual void give_up() noexcept {}

  const OperationName& name() const { return name_; }

  void wait(const ExecutionSpace& space) override { take_result(space); }
  void wait_on_host();
  /// Waits and makes the result visible to `space`. The result is brought back only once, because its memory may be
  /// reused later.
  void take_result(const ExecutionSpace& space);
  bool done() override { return finished_.load(std::memory_order_acquire) != 0; }
  /// Waits without bringing the result back; the result is lost.
  void wait_for_its_end() noexcept override;
  /// Returns true if the operation ended with an error. Valid only when it is done.
  bool failed() const { return error_ != nullptr; }
  /// Wakes the waiting threads. They throw `error` unless it is null.
  virtual void finish(std::exception_ptr error);

 protected:
  /// Makes the result visible to `space`.
  virtual void write_back(const ExecutionSpace&) {}

 private:
  void wait_until_finished();

  OperationName name_;
  std::atomic<int> finished_{0};
  bool result_taken_ = false;  ///< used only by the waiting thread
  std::exception_ptr error_;
};

/// An observer that is called regularly: between the steps of an operation, while there is no operation, and while
/// operations end after a failure.
class Watch {
 public:
  struct Failure {
    std::string error;
    std::chrono::steady_clock::time_point since;
  };
  struct Waiting {
    const OperationName& name;  ///< the first operation under way, or the last one if there is none
    bool under_way;
    /// When this operation became the first one under way, or when the thread became idle.
    std::chrono::steady_clock::time_point since;
    /// Null unless an operation has failed and those under way have not ended yet. That may take forever, so the watch
    /// limits it.
    const Failure* failure = nullptr;
  };

  virtual ~Watch() = default;
  virtual void look(const Waiting& waiting) = 0;
};

class CommunicationThread {
 public:
  CommunicationThread();
  ~CommunicationThread();
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;

  /// Appends an operation. Operations begin in this order, each when all earlier ones have ended, have been launched on
  /// its stream, or may run beside it, and fewer than most_under_way are under way. After an operation has failed, all
  /// later ones fail with the same error.
  void submit(std::shared_ptr<QueuedOperation> operation);

  /// Enough that the host can launch most of a step ahead of the device: a thread that waits for an operation to be
  /// launched waits for this bound, too.
  static constexpr std::size_t most_under_way = 64;

  /// Throws the error of the operation that failed, if one has. Any thread may call it. It throws before kernels that
  /// wait for the failed operation run on.
  void expect_no_failure() const;

  /// Number of operations submitted so far.
  std::uint64_t submitted() const { return submitted_; }

  /// Sets the number of ranks that share a processor. They then poll less often, so that they do not keep each other
  /// from computing: ranks that have waited for long together poll once per 100 us and processor, or less often if
  /// their polls would take more than a tenth of it. Call it before the first operation.
  void set_ranks_a_processor(std::size_t ranks) { ranks_a_processor_ = ranks; }

  /// Sets the watch, which must outlive the thread; null for none.
  void set_watch(Watch* watch);

  /// Ends the thread when all submitted operations are done.
  void finish();
  /// Ends the thread now; unfinished operations fail.
  void abandon();

 private:
  using Clock = std::chrono::steady_clock;
  struct UnderWay {
    std::shared_ptr<QueuedOperation> operation;
    Clock::time_point since;  ///< since when it is the first one of its stream, or the only one without a stream
    bool launched = false;
  };

  void run();
  bool wait_for_operation();
  bool may_begin() const;
  bool begin_next();
  void carry_out();
  bool advance_all();
  QueuedOperation::Progress advance(QueuedOperation& operation);
  void end(std::size_t position);
  void make_first();
  void fail_all();
  void rest(std::chrono::microseconds time);
  void look(bool under_way, Clock::time_point since, const Watch::Failure* failure = nullptr);
  void join();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<QueuedOperation>> queue_;
  bool closing_ = false;
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<bool> abandoned_{false};
  std::atomic<std::size_t> ranks_a_processor_{1};
  std::atomic<Watch*> watch_{nullptr};
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};  ///< set after failure_, which never changes afterwards
  std::deque<UnderWay> under_way_;   ///< in the order of submission, on one stream at most; of those on a stream, all
                                     ///< but the last have been launched
  OperationName name_;               ///< the first operation under way, or the last one if there is none
  Clock::time_point first_since_;    ///< since when it is the first one of its kind, or since the end of the last one
  Clock::time_point looked_, advanced_all_;
  Clock::time_point traced_;  ///< end of the last traced operation
  std::thread thread_;
};

}  // namespace mylos::parallel
