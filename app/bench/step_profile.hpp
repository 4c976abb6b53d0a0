#pragma once

#include "core/work.hpp"

#include <chrono>
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

/// Records from construction to destruction, replacing any other tool; only one instance may exist. On a device, it
/// waits for each launch so that each kernel gets its own time; kernels then do not overlap.
class StepProfile : private WorkListener {
 public:
  StepProfile();
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  /// Returns the spans recorded so far. Their seconds add up to the time from the start of the first span to the end of
  /// the last one, except for time in which no span was open.
  const Profile& profile() const { return profile_; }

 private:
  struct Callbacks;
  using Clock = std::chrono::steady_clock;
  using Entry = Profile::value_type;

  void launching(const char* label, const Work& work) override;
  void begin_kernel(const char* label);
  void begin(Span span, const std::optional<Work>& work);
  void end();
  /// Adds the time since the last event to the innermost open span.
  void count_time();

  Profile profile_;
  std::string launching_;     ///< label of the kernel that last reported its work
  Work work_;                 ///< the work that it reported
  std::vector<Entry*> open_;  ///< innermost last
  Clock::time_point last_;
};

}  // namespace mylos::app
