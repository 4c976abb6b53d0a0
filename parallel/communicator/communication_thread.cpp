#include "parallel/communicator/communication_thread.hpp"

#include "core/trace.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <utility>

namespace mylos::parallel {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Between two looks of the watch.
constexpr milliseconds look_interval{100};

/// How long to leave the core between two questions: not at all for what comes at once, then for others to run, then
/// asleep for a part of the time that was waited already.
class Pause {
 public:
  void again() { begin_ = Clock::now(); }

  void pause() const {
    const auto waited = Clock::now() - begin_;
    if (waited < microseconds(10)) return;
    if (waited < microseconds(100)) {
      ::sched_yield();
      return;
    }
    const auto asleep = std::chrono::duration_cast<microseconds>(waited) / 16;
    std::this_thread::sleep_for(std::clamp(asleep, microseconds(10), microseconds(100)));
  }

 private:
  Clock::time_point begin_ = Clock::now();
};

/// Signals are for the thread that computes.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

void QueuedOperation::wait_on_host() {
  finished_.wait(0, std::memory_order_acquire);
  if (error_) std::rethrow_exception(error_);
}

void QueuedOperation::take_result(const ExecutionSpace& space) {
  wait_on_host();
  if (!std::exchange(result_taken_, true)) write_back(space);
}

void QueuedOperation::finish(std::exception_ptr error) {
  error_ = std::move(error);
  finished_.store(1, std::memory_order_release);
  finished_.notify_all();
}

CommunicationThread::CommunicationThread() : looked_(Clock::now()), thread_([this] { run(); }) {}

CommunicationThread::~CommunicationThread() {
  if (thread_.joinable()) abandon();
}

void CommunicationThread::submit(std::shared_ptr<QueuedOperation> operation) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(operation));
  }
  ++submitted_;
  changed_.notify_one();
}

void CommunicationThread::set_watch(Watch* watch) { watch_ = watch; }

void CommunicationThread::finish() { join(); }

void CommunicationThread::abandon() {
  abandoned_ = true;
  join();
}

void CommunicationThread::join() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void CommunicationThread::run() {
  block_signals();
  ::pthread_setname_np(::pthread_self(), "mylos-ranks");
  // Sleeps are as short as asked: the system's default adds 50 us.
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  while (const std::shared_ptr<QueuedOperation> operation = next()) carry_out(*operation);
}

std::shared_ptr<QueuedOperation> CommunicationThread::next() {
  const Clock::time_point begin = Clock::now();
  std::unique_lock lock(mutex_);
  while (queue_.empty() && !closing_) {
    if (changed_.wait_for(lock, look_interval) == std::cv_status::no_timeout) continue;
    lock.unlock();
    look(false, begin);
    lock.lock();
  }
  if (queue_.empty()) return nullptr;
  std::shared_ptr<QueuedOperation> operation = std::move(queue_.front());
  queue_.pop_front();
  return operation;
}

void CommunicationThread::carry_out(QueuedOperation& operation) {
  const Clock::time_point begin = Clock::now();
  name_ = operation.name();
  const TraceSpan span(TraceLane::communication, "exchange", name_.what);
  Pause pause;
  try {
    if (failure_) std::rethrow_exception(failure_);
    for (;;) {
      if (abandoned_) throw std::runtime_error("given up, because this rank ends");
      const QueuedOperation::Progress progress = operation.advance();
      if (progress == QueuedOperation::Progress::done) break;
      if (progress == QueuedOperation::Progress::moved) pause.again();
      pause.pause();
      look(true, begin);
      if (failure_) std::rethrow_exception(failure_);
    }
    operation.finish(nullptr);
  } catch (const std::exception& error) {
    if (!failure_) failure_ = std::make_exception_ptr(std::runtime_error(name_.what + ": " + error.what()));
    operation.give_up();
    operation.finish(failure_);
  }
}

void CommunicationThread::look(bool under_way, Clock::time_point since) {
  const Clock::time_point now = Clock::now();
  Watch* const watch = watch_;
  if (watch == nullptr || now - looked_ < look_interval) return;
  looked_ = now;
  try {
    watch->look({name_, under_way, since});
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
}

}  // namespace mylos::parallel
