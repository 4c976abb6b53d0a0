#include "parallel/launch/blocking_calls.hpp"

#include "core/base/setting_error.hpp"
#include "core/base/standard_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

namespace mylos::parallel {
namespace {

/// Added to the limit, because libraries need time to start processes and to connect many of them, in seconds.
constexpr double start_time = 15.0, start_time_per_rank = 0.05;
/// The first rank reports a call that does not return; the next two only if they are still there after this time each.
/// The others then end without a line.
constexpr double next_tells = 3.0;
constexpr std::size_t last_to_tell = 2;

}  // namespace

BlockingCalls::BlockingCalls(std::chrono::duration<double> limit, std::size_t rank, std::size_t ranks)
    : limit_(limit.count()), rank_(rank), ranks_(ranks) {}

double BlockingCalls::limit() const {
  return limit_ + start_time + start_time_per_rank * static_cast<double>(ranks_) +
         next_tells * static_cast<double>(std::min(rank_, last_to_tell + 1));
}

void BlockingCalls::end(const char* name) const {
  const std::string late = fmt::format("rank {}: {} has not returned for {:.0f} s", rank_, name, limit());
  const bool tells = rank_ <= last_to_tell;
  if (!exit_code_) {
    if (tells) {
      log_line(
          fmt::format("mylos: error: {}: another rank has not reached it, or MPI or the network between nodes hangs; a "
                      "longer {} would wait",
                      late, setting("collective-timeout")));
    }
    std::_Exit(1);
  }
  try {
    flush_output();
  } catch (...) {
    std::_Exit(1);
  }
  if (tells) {
    log_line(fmt::format("mylos: {}: all ranks have completed their work, so this one ends with exit code {}", late,
                         *exit_code_));
  }
  std::_Exit(*exit_code_);
}

}  // namespace mylos::parallel
