#include "parallel/communicator/communication_thread.hpp"

#include "core/base/process/threads.hpp"
#include "core/trace.hpp"

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>
#include <utility>

namespace mylos::parallel {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;
using Progress = QueuedOperation::Progress;

/// Interval between two calls of the watch.
constexpr milliseconds look_interval{100};

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Returns the processor time that this thread has used.
nanoseconds processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

/// Controls how the thread gives up its core between polls: at first not at all, for operations that end at once; then
/// it yields; then it sleeps for a fraction of the time already waited. Ranks that share a processor sleep longer, in
/// proportion to their number and to the cost of a poll. The polls of all ranks that have waited for long then take at
/// most a tenth of the processor.
class Pause {
 public:
  explicit Pause(std::size_t ranks_a_processor)
      : ranks_(static_cast<nanoseconds::rep>(ranks_a_processor)), eager_(microseconds(10) / ranks_) {}

  void again() {
    begin_ = Clock::now();
    if (ranks_ > 1) begin_polls();
  }

  /// `rest(time)` sleeps for `time`, or until there is more to do.
  template <class Rest>
  void pause(const Rest& rest) {
    ++polls_;
    const auto waited = Clock::now() - begin_;
    if (waited < eager_) return;
    if (ranks_ == 1 && waited < microseconds(100)) {
      ::sched_yield();
      return;
    }
    if (ranks_ > 1) end_polls();
    const auto shortest = ranks_ * std::max<nanoseconds>(microseconds(10), poll_);
    const auto longest = std::min<nanoseconds>(10 * shortest, look_interval / 2);
    const auto asleep = std::clamp<nanoseconds>(waited / 16, std::min(shortest, longest), longest);
    rest(std::chrono::duration_cast<microseconds>(asleep));
  }

 private:
  void begin_polls() {
    used_ = processor_time();
    polls_ = 0;
  }
  /// Measures the polls since the last sleep, in processor time: other ranks may have interrupted them.
  void end_polls() {
    const nanoseconds before = used_;
    const auto polls = polls_;
    begin_polls();
    poll_ += ((used_ - before) / polls - poll_) / 8;
  }

  nanoseconds::rep ranks_;
  nanoseconds eager_;  ///< polls continuously for so long
  Clock::time_point begin_ = Clock::now();
  nanoseconds used_ = processor_time();
  nanoseconds::rep polls_ = 0;  ///< since the last sleep
  nanoseconds poll_{0};         ///< average cost of a poll
};

}  // namespace

void QueuedOperation::wait_until_finished() {
  const Kokkos::Profiling::ScopedRegion waiting("mylos::communicator::wait");
  finished_.wait(0, std::memory_order_acquire);
}

void QueuedOperation::wait_on_host() {
  wait_until_finished();
  if (error_) std::rethrow_exception(error_);
}

void QueuedOperation::wait_for_its_end() noexcept {
  if (!done()) wait_until_finished();
  result_taken_ = true;
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

CommunicationThread::CommunicationThread() : looked_(Clock::now()), thread_(start_thread([this] { run(); })) {}

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

void CommunicationThread::expect_no_failure() const {
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(failure_);
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
  ::pthread_setname_np(::pthread_self(), "mylos-ranks");
  // Keep sleeps short: the system's default timer slack adds 50 us.
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  while (wait_for_operation()) carry_out();
}

/// Returns false if there is no operation and none will come.
bool CommunicationThread::wait_for_operation() {
  const Clock::time_point begin = Clock::now();
  std::unique_lock lock(mutex_);
  while (queue_.empty() && !closing_) {
    if (changed_.wait_for(lock, look_interval) == std::cv_status::no_timeout) continue;
    lock.unlock();
    look(false, begin);
    lock.lock();
  }
  return !queue_.empty();
}

/// Returns true if there is another operation that may begin now. The caller must hold the mutex.
bool CommunicationThread::may_begin() const {
  if (queue_.empty()) return false;
  const QueuedOperation& next = *queue_.front();
  const void* const stream = next.stream();
  if (stream != nullptr && under_way_.size() >= most_under_way) return false;
  return std::ranges::all_of(under_way_, [&](const UnderWay& each) {
    const void* const other = each.operation->stream();
    if (stream == other) return stream != nullptr && each.launched;
    if (stream != nullptr && other != nullptr) return false;
    return (stream == nullptr ? next : *each.operation).uses_host_memory_only();
  });
}

bool CommunicationThread::begin_next() {
  {
    const std::lock_guard lock(mutex_);
    if (!may_begin()) return false;
    under_way_.push_back({std::move(queue_.front()), Clock::now()});
    queue_.pop_front();
  }
  if (under_way_.size() == 1) make_first();
  return true;
}

/// Notes the name of the first operation under way, and the time since which it is the first one of its kind.
void CommunicationThread::make_first() {
  if (under_way_.empty()) {
    first_since_ = Clock::now();
  } else {
    first_since_ = under_way_.front().since;
    name_ = under_way_.front().operation->name();
  }
}

/// Runs operations until none is under way.
void CommunicationThread::carry_out() {
  Pause pause(ranks_a_processor_);
  while (begin_next() || !under_way_.empty()) {
    try {
      if (failure_) std::rethrow_exception(failure_);
      if (abandoned_) throw std::runtime_error(name_.what + ": given up, because this rank ends");
      if (advance_all()) pause.again();
      if (under_way_.empty()) return;
      pause.pause([this](microseconds time) { rest(time); });
      look(true, first_since_);
      if (failure_) std::rethrow_exception(failure_);
    } catch (const std::exception&) {
      if (!failure_) failure_ = std::current_exception();
      fail_all();
    }
  }
}

/// Advances the operations under way. Those of a stream end in order, so operations that have been launched after the
/// first one of their stream only need to show errors, once per look_interval. Returns true if any made progress.
bool CommunicationThread::advance_all() {
  const Clock::time_point now = Clock::now();
  const bool advances_all = now - advanced_all_ >= look_interval;
  if (advances_all) advanced_all_ = now;
  bool moved = false, is_first_of_stream = true;
  for (std::size_t position = 0; position < under_way_.size();) {
    UnderWay& each = under_way_[position];
    const bool is_first = each.operation->stream() == nullptr || is_first_of_stream;
    if (is_first || !each.launched || advances_all) {
      const Progress progress = advance(*each.operation);
      if (progress == Progress::moved || (progress == Progress::launched && !each.launched)) moved = true;
      if (progress == Progress::done && is_first) {
        end(position);
        moved = true;
        continue;
      }
      each.launched = progress == Progress::launched || progress == Progress::done;
    }
    if (each.operation->stream() != nullptr) is_first_of_stream = false;
    ++position;
  }
  return moved;
}

Progress CommunicationThread::advance(QueuedOperation& operation) {
  try {
    return operation.advance();
  } catch (const std::exception& error) {
    throw std::runtime_error(operation.name().what + ": " + error.what());
  }
}

/// Ends an operation that is the first one of its stream, or has none.
void CommunicationThread::end(std::size_t position) {
  const UnderWay ended = std::move(under_way_[position]);
  under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(position));
  const Clock::time_point now = Clock::now();
  // Events of a trace do not overlap, so exchanges of hosts are left out while the device exchanges.
  const auto is_on_stream = [](const UnderWay& each) { return each.operation->stream() != nullptr; };
  if (Trace::is_on() && (is_on_stream(ended) || std::ranges::none_of(under_way_, is_on_stream))) {
    Trace::add(TraceLane::communication, "exchange " + ended.operation->name().what, std::max(ended.since, traced_),
               now);
    traced_ = now;
  }
  const void* const stream = ended.operation->stream();
  const auto next = std::ranges::find_if(
      under_way_, [&](const UnderWay& each) { return stream != nullptr && each.operation->stream() == stream; });
  if (next != under_way_.end()) next->since = now;
  if (position == 0) make_first();
  ended.operation->finish(nullptr);
}

/// The watch goes on until all operations have stopped, and limits the time of that.
void CommunicationThread::fail_all() {
  failed_.store(true, std::memory_order_release);
  const Watch::Failure failure{text_of(failure_), Clock::now()};
  for (const UnderWay& each : under_way_) each.operation->stop();
  const auto has_stopped = [](const UnderWay& each) { return each.operation->has_stopped(); };
  while (!std::ranges::all_of(under_way_, has_stopped)) {
    std::this_thread::sleep_for(microseconds(100));
    look(true, first_since_, &failure);
  }
  for (const UnderWay& each : under_way_) each.operation->give_up();
  for (const UnderWay& each : under_way_) each.operation->finish(failure_);
  under_way_.clear();
}

void CommunicationThread::rest(microseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return may_begin(); });
}

void CommunicationThread::look(bool under_way, Clock::time_point since, const Watch::Failure* failure) {
  const Clock::time_point now = Clock::now();
  Watch* const watch = watch_;
  if (watch == nullptr || now - looked_ < look_interval) return;
  looked_ = now;
  try {
    watch->look({name_, under_way, since, failure});
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
}

}  // namespace mylos::parallel
