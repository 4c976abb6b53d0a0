#pragma once

#include "core/base/watchdog.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

namespace mylos::parallel {

/// Limits the time of calls into MPI that wait for other ranks inside the library, where no communication thread can
/// look for missing ranks: MPI_Init, MPI_Finalize and a few between them. A call that takes longer ends this process
/// with one line, by a thread that calls no MPI. The launcher then ends the other ranks.
class BlockingCalls {
 public:
  /// `limit`: the time that this rank waits for others. `rank` and `ranks` are those of the launcher.
  BlockingCalls(std::chrono::duration<double> limit, std::size_t rank, std::size_t ranks);

  void set_limit(std::chrono::duration<double> limit) { limit_ = limit.count(); }
  /// From now on nothing can fail any more: a call that hangs ends the process with this code.
  void set_exit_code(int exit_code) { exit_code_ = exit_code; }

  /// Makes a call and returns its result.
  template <class Call>
  auto run(const char* name, const Call& call) const {
    std::optional<Watchdog> watchdog;
    try {
      watchdog.emplace(limit(), [this, name] { end(name); });
    } catch (const std::runtime_error&) {  // The system refuses a thread. The call may return all the same.
    }
    return call();
  }

 private:
  double limit() const;
  [[noreturn]] void end(const char* name) const;

  double limit_;
  std::size_t rank_, ranks_;
  std::optional<int> exit_code_;
};

}  // namespace mylos::parallel
