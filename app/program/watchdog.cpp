#include "app/program/watchdog.hpp"

#include <chrono>
#include <utility>

namespace mylos::app {

Watchdog::Watchdog(double seconds, std::function<void()> late)
    : thread_([this, seconds, late = std::move(late)] {
        std::unique_lock lock(mutex_);
        if (!woken_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return done_; })) late();
      }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  woken_.notify_one();
  thread_.join();
}

}  // namespace mylos::app
