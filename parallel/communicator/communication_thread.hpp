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

/// The one thread of a process that talks to other ranks. It never waits inside the library that it talks through: it
/// asks whether what has begun is done, and gives its core away in between, so that it neither starves the threads that
/// compute nor is blind while a rank does not come. Operations that a device's stream keeps in order are launched
/// ahead.
namespace mylos::parallel {

/// How an operation is told to people and to other ranks.
struct OperationName {
  std::string what;
  std::size_t bytes = 0;
  std::uint64_t group = 0;     ///< the ranks that take part
  std::uint64_t sequence = 0;  ///< operations of that group before it
};

class QueuedOperation : public Event::Operation {
 public:
  /// `launched`: only its end is to come, and the next operation of the same stream may begin.
  enum class Progress { done, moved, waiting, launched };

  explicit QueuedOperation(OperationName name) : name_(std::move(name)) {}

  /// Goes on as far as it can without waiting. Called by the communication thread alone; again after done, where
  /// operations before it are not.
  virtual Progress advance() = 0;
  /// The device stream that runs this operation, or null. Operations of one stream run in the order of their launches.
  virtual const void* stream() const { return nullptr; }
  /// Makes what has begun end without other ranks, before it fails: of all that are under way first stop(), which does
  /// not wait, and then give_up(). Called by the communication thread alone.
  virtual void stop() noexcept {}
  virtual void give_up() noexcept {}

  const OperationName& name() const { return name_; }

  void wait(const ExecutionSpace& space) override { take_result(space); }
  void wait_on_host();
  /// Waits, and brings the result to where `space` sees it: once, because its memory may hold something else later.
  void take_result(const ExecutionSpace& space);
  bool done() override { return finished_.load(std::memory_order_acquire) != 0; }
  /// Gives up a result that was not brought back.
  void wait_for_its_end() noexcept override {
    finished_.wait(0, std::memory_order_acquire);
    result_taken_ = true;
  }
  /// It ended with an error. Asked when done.
  bool failed() const { return error_ != nullptr; }
  /// Lets those who wait go on; `error` is what they throw.
  void finish(std::exception_ptr error);

 protected:
  /// Brings the result to where `space` sees it.
  virtual void write_back(const ExecutionSpace&) {}

 private:
  OperationName name_;
  std::atomic<int> finished_{0};
  bool result_taken_ = false;  ///< of the thread that waits
  std::exception_ptr error_;
};

/// What is asked from time to time, between steps of an operation and while there is none.
class Watch {
 public:
  struct Waiting {
    const OperationName& name;  ///< of the first operation under way, or of the last one
    bool under_way;
    /// No operation before it was under way, or there was none.
    std::chrono::steady_clock::time_point since;
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

  /// Carries out `operation` after all that were submitted before: it begins when they have ended, or when they are
  /// launched on its stream and fewer than most_under_way. After one has failed all later ones fail as it did.
  void submit(std::shared_ptr<QueuedOperation> operation);

  static constexpr std::size_t most_under_way = 8;

  /// Operations that were ever submitted.
  std::uint64_t submitted() const { return submitted_; }

  /// Where several ranks share a processor each asks more rarely, so that they do not keep each other from computing:
  /// of a processor's ranks that wait for long one asks every 100 us. Before the first operation.
  void set_ranks_a_processor(std::size_t ranks) { ranks_a_processor_ = ranks; }

  /// From here on `watch` is asked; it outlives the thread. None: nothing is.
  void set_watch(Watch* watch);

  /// Ends the thread when all that was submitted is done.
  void finish();
  /// Ends the thread now; what was not done fails.
  void abandon();

 private:
  using Clock = std::chrono::steady_clock;
  struct UnderWay {
    std::shared_ptr<QueuedOperation> operation;
    bool launched = false;
  };

  void run();
  bool wait_for_operation();
  bool may_begin() const;
  bool begin_next();
  void carry_out();
  bool advance_all();
  QueuedOperation::Progress advance(QueuedOperation& operation);
  void end_first();
  void make_first();
  void fail_all();
  void rest(std::chrono::microseconds time);
  void look(bool under_way, Clock::time_point since);
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
  std::deque<UnderWay> under_way_;  ///< all but the last are launched
  OperationName name_;              ///< of the first operation under way, or of the last one
  Clock::time_point first_since_;   ///< the first one is the first
  Clock::time_point looked_;
  std::thread thread_;
};

}  // namespace mylos::parallel
