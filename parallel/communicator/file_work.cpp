#include "parallel/communicator/file_work.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <ctime>

namespace mylos::parallel {
namespace {

using Clock = FileWork::Clock;

std::atomic<int> depth{0};
std::atomic<Clock::time_point> begun{}, ended{};
std::atomic<clockid_t> worker{};  ///< clock of the processor time of the thread that works with files

std::chrono::duration<double> from_until(Clock::time_point begin, Clock::time_point end) {
  return std::max(end - std::max(begin, begun.load()), Clock::duration::zero());
}

/// Returns the processor time of the thread that works with files; zero if it has ended.
std::chrono::nanoseconds used_by_worker() {
  timespec used{};
  ::clock_gettime(worker, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

FileWork::FileWork() {
  if (depth == 0) {
    clockid_t clock{};
    if (::pthread_getcpuclockid(::pthread_self(), &clock) == 0) worker = clock;
    begun = Clock::now();
  }
  ++depth;
}

FileWork::~FileWork() {
  if (depth == 1) ended = Clock::now();
  --depth;
}

bool FileWork::is_under_way() { return depth > 0; }

std::chrono::duration<double> FileWork::since(Clock::time_point begin) {
  return from_until(begin, is_under_way() ? Clock::now() : ended.load());
}

std::chrono::duration<double> FileWork::progress_since(Clock::time_point begin) {
  static std::chrono::nanoseconds used_before{0};
  static Clock::time_point seen{};
  if (!is_under_way()) return since(begin);
  const std::chrono::nanoseconds used = used_by_worker();
  if (used != used_before) seen = Clock::now();
  used_before = used;
  return from_until(begin, seen);
}

}  // namespace mylos::parallel
