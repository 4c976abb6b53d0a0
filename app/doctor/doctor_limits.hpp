#pragma once

#include "app/doctor/doctor_finding.hpp"

#include <functional>
#include <string>

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

}  // namespace mylos::app
