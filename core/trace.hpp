#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Timelines of this process' threads, to show which operations overlap. Off by default.
namespace mylos {

/// A row of the timeline.
enum class TraceLane { compute, waiting, communication };

struct TraceEvent {
  TraceLane lane = TraceLane::compute;
  std::string name;
  double begin = 0.0, end = 0.0;  ///< seconds of the clock shared by all processes of a machine
};

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts recording, up to `most` events.
  static void start(std::size_t most);
  static void stop();
  static bool is_on();
  static void add(TraceLane lane, std::string name, Clock::time_point begin, Clock::time_point end);
  /// Returns the recorded events, ordered by end time.
  static std::vector<TraceEvent> events();
};

/// Records an event from its construction to its destruction. Costs one check of a flag if tracing is off.
class TraceSpan {
 public:
  TraceSpan(TraceLane lane, const char* what, const std::string& name);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  TraceLane lane_;
  std::string name_;
  Trace::Clock::time_point begin_;
  bool is_on_;
};

/// Formats one rank's events as its part of a Chrome trace. The parts of all `ranks`, one after the other, are the
/// trace. chrome://tracing and Perfetto show one process per rank and one row per lane.
std::string chrome_trace_part(std::size_t rank, std::size_t ranks, const std::vector<TraceEvent>& events);
/// Returns whether a file with this beginning, at least 100 bytes, is such a trace.
bool is_chrome_trace(std::string_view beginning);

}  // namespace mylos
