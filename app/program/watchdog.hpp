#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace mylos::app {

/// Calls `late`, on a thread of its own, if it lives longer than a time; `late` is to end the program, because what it
/// watches cannot be interrupted.
class Watchdog {
 public:
  Watchdog(double seconds, std::function<void()> late);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  bool done_ = false;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace mylos::app
