#include "core/base/process/watchdog.hpp"

#include "core/base/process/threads.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace mylos {

Watchdog::Watchdog(double seconds, std::function<void()> late)
    : thread_(start_thread([this, seconds, late = std::move(late)] {
        if (!ends_within(seconds)) late();
      })) {}

/// Waits in slices. After a stop of the process the slice under way counts only once.
bool Watchdog::ends_within(double seconds) {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds longest(1.0);
  std::unique_lock lock(mutex_);
  Seconds left(seconds);
  while (left > Seconds::zero()) {
    if (woken_.wait_for(lock, std::min(left, longest), [this] { return done_; })) return true;
    left -= longest;
  }
  return done_;
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  woken_.notify_one();
  thread_.join();
}

}  // namespace mylos
