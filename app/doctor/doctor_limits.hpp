#pragma once

#include "app/doctor/doctor_finding.hpp"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

/// Time limits for checks that may hang.
namespace mylos::app {

/// Runs checks that may hang, each on a thread of its own that is abandoned after a time limit.
class LimitedChecks {
 public:
  /// `limit`: the time limit of doctor in seconds, of which each check gets a fraction.
  explicit LimitedChecks(double limit) : limit_(limit) {}

  double limit() const { return limit_; }
  /// Runs `check` and adds its findings; an exception becomes an error called `name`. If it does not return within
  /// `fraction` of the limit, adds a finding that names its operation, `what`, and returns false. `check` must not
  /// refer to local variables of the caller.
  bool run(Findings& found, const char* name, const std::string& what, double fraction,
           std::function<Findings()> check);
  /// Returns whether a check has not returned in time, so that its thread may still run.
  bool has_left_threads() const { return has_left_threads_; }

 private:
  double limit_;
  bool has_left_threads_ = false;
};

/// Calls `late` on a separate thread if the object is not destroyed within the time limit. `late` should end the
/// program, because the watched operation cannot be interrupted.
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
  std::thread thread_;  ///< declared last: it uses the other members
};

}  // namespace mylos::app
