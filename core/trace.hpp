#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// What the threads of this process did when, so that one can see what overlaps. Off until somebody asks for it.
namespace mylos {

/// A row of the picture.
enum class TraceLane { compute, waiting, communication };

struct TraceEvent {
  TraceLane lane = TraceLane::compute;
  std::string name;
  double begin = 0.0, end = 0.0;  ///< seconds of the clock that all processes of a machine share
};

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  /// From here on events are kept, at most `most` of them.
  static void start(std::size_t most);
  static void stop();
  static bool is_on();
  static void add(TraceLane lane, std::string name, Clock::time_point begin, Clock::time_point end);
  /// What was kept, in the order in which it ended.
  static std::vector<TraceEvent> events();
};

/// An event from its making to its end. Costs one look at a flag where nothing is traced.
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

/// Events of one rank as the elements of a Chrome trace's list, and the trace of all ranks: what chrome://tracing and
/// Perfetto show, a process a rank, a row a lane.
std::string chrome_events(std::size_t rank, const std::vector<TraceEvent>& events);
std::string chrome_trace(const std::vector<std::string>& ranks);
/// Whether a file that begins so, with 100 bytes or more, is a chrome_trace.
bool is_chrome_trace(std::string_view beginning);

}  // namespace mylos
