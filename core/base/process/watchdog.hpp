#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

namespace mylos {

/// Calls `late` on a separate thread if the object is not destroyed within the time limit. `late` should end the
/// program, because the watched operation cannot be interrupted. Time in which the process is stopped does not count.
class Watchdog {
 public:
  Watchdog(double seconds, std::function<void()> late);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  bool ends_within(double seconds);

  std::mutex mutex_;
  std::condition_variable woken_;
  bool done_ = false;
  std::thread thread_;  ///< declared last: it uses the other members
};

/// Makes a call and returns its result. Calls `late`, as a Watchdog does, if it takes longer than `seconds`.
template <class Call>
auto call_within(double seconds, const std::function<void()>& late, const Call& call) {
  std::optional<Watchdog> watchdog;
  try {
    watchdog.emplace(seconds, late);
  } catch (const std::runtime_error&) {  // The system refuses a thread. The call may return all the same.
  }
  return call();
}

}  // namespace mylos
