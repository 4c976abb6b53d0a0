#include "core/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace mylos {
namespace {

const std::string trace_begin = "{\"traceEvents\": [\n", trace_end = "\n]}\n";

struct Recorder {
  std::atomic<bool> is_on = false;
  std::mutex mutex;  ///< protects the members below
  std::size_t most = 0;
  std::vector<TraceEvent> events;
};

Recorder& recorder() {
  static Recorder recorder;
  return recorder;
}

double seconds(Trace::Clock::time_point at) { return std::chrono::duration<double>(at.time_since_epoch()).count(); }

const char* name_of(TraceLane lane) {
  switch (lane) {
    case TraceLane::compute:
      return "compute";
    case TraceLane::waiting:
      return "waiting";
    default:
      return "communication";
  }
}

/// Escapes a JSON string: names come from models and may contain quotes and backslashes.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    if (static_cast<unsigned char>(letter) >= 0x20) result += letter;
  }
  return result;
}

/// Formats a line that names a rank's process.
std::string process_name(std::size_t rank) {
  return fmt::format(R"({{"ph": "M", "name": "process_name", "pid": {}, "args": {{"name": "rank {}"}}}})", rank, rank);
}

}  // namespace

void Trace::start(std::size_t most) {
  Recorder& to = recorder();
  const std::lock_guard lock(to.mutex);
  to.most = most;
  to.events.clear();
  to.events.reserve(most);
  to.is_on = true;
}

void Trace::stop() { recorder().is_on = false; }

bool Trace::is_on() { return recorder().is_on.load(std::memory_order_relaxed); }

void Trace::add(TraceLane lane, std::string name, Clock::time_point begin, Clock::time_point end) {
  Recorder& to = recorder();
  const std::lock_guard lock(to.mutex);
  if (to.is_on && to.events.size() < to.most)
    to.events.push_back({lane, std::move(name), seconds(begin), seconds(end)});
}

std::vector<TraceEvent> Trace::events() {
  Recorder& from = recorder();
  const std::lock_guard lock(from.mutex);
  return from.events;
}

TraceSpan::TraceSpan(TraceLane lane, const char* what, const std::string& name) : lane_(lane), is_on_(Trace::is_on()) {
  if (!is_on_) return;
  name_ = fmt::format("{} {}", what, name);
  begin_ = Trace::Clock::now();
}

TraceSpan::~TraceSpan() {
  if (is_on_) Trace::add(lane_, std::move(name_), begin_, Trace::Clock::now());
}

std::string chrome_trace_part(std::size_t rank, std::size_t ranks, const std::vector<TraceEvent>& events) {
  std::string text = (rank == 0 ? trace_begin : ",\n") + process_name(rank);
  for (const TraceLane lane : {TraceLane::compute, TraceLane::waiting, TraceLane::communication}) {
    text += fmt::format(
        ",\n"
        R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": "{}"}}}})",
        rank, static_cast<int>(lane), name_of(lane));
  }
  for (const TraceEvent& event : events) {
    text += fmt::format(
        ",\n"
        R"({{"ph": "X", "name": "{}", "pid": {}, "tid": {}, "ts": {:.1f}, "dur": {:.1f}}})",
        escaped(event.name), rank, static_cast<int>(event.lane), 1e6 * event.begin, 1e6 * (event.end - event.begin));
  }
  return rank + 1 == ranks ? text + trace_end : text;
}

bool is_chrome_trace(std::string_view beginning) { return beginning.starts_with(trace_begin + process_name(0)); }

}  // namespace mylos
