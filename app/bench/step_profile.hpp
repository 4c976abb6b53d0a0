#pragma once

#include "core/device.hpp"
#include "core/work.hpp"

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Profiles a part of the program through Kokkos Tools: every kernel, matrix product, copy and named region of host
/// code.
namespace mylos::app {

enum class SpanKind {
  kernel,   ///< a Kokkos kernel
  product,  ///< a matrix product, without our own kernels that run inside it
  copy,     ///< Kokkos::deep_copy, from an array or a single value
  section,  ///< a region of host code, without the kernels, products and copies inside it
};

/// A name under which time is counted.
struct Span {
  SpanKind kind = SpanKind::section;
  std::string name;     ///< the label; for copies, "copy to" or "fill of" and the first two parts of the array's label
  std::string product;  ///< for a kernel inside a matrix product: the label of that product

  auto operator<=>(const Span&) const = default;
};

struct SpanTotals {
  std::size_t calls = 0;
  double seconds = 0.0;  ///< excluding nested spans
  /// Sum over all calls. nullopt if a call did not report its work; host code never does.
  std::optional<Work> work = Work{};

  void add_work(const std::optional<Work>& more);
};

using Profile = std::map<Span, SpanTotals>;

/// Records from construction to `stop` or destruction, replacing any other tool; only one instance may record. On a
/// device, times are those between events on the queue of ExecutionSpace(), so the host does not wait for launches (if
/// Kokkos was initialized with UnfencedTools): a section has the time in which the device was idle, and launches on
/// other queues have no time.
class StepProfile final : private WorkListener {
 public:
  StepProfile();
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  /// Ends the recording, and gives back the tool that listened before. Does not wait for the device.
  void stop();
  /// Returns the spans recorded so far. Their seconds add up to the time from the start of the first span to the end of
  /// the last one, except for time in which no span was open. Waits for the device to finish them.
  const Profile& profile();

 private:
  struct Callbacks;
  using Entry = Profile::value_type;
  /// The begin or the end of a span.
  struct Mark {
    LaunchTime time;
    Entry* before = nullptr;  ///< the innermost span that was open up to this time
  };

  void launching(const char* label, const Work& work) override;
  void begin_kernel(const char* label);
  void begin(Span span, const std::optional<Work>& work);
  void end();
  /// Marks the end of a time of the innermost open span.
  void mark();

  Profile profile_;
  std::string launching_;     ///< label of the kernel that last reported its work
  Work work_;                 ///< the work that it reported
  std::vector<Entry*> open_;  ///< innermost last
  ExecutionSpace space_;
  std::vector<Mark> marks_;  ///< those whose times are not counted yet, and the last one before them
};

}  // namespace mylos::app
