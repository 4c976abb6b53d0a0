#pragma once

#include "core/kernels/work.hpp"

#include <chrono>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Where the time of a stretch of the program goes, heard through Kokkos Tools: every kernel, matrix product, copy and
/// named region of host code.
namespace mylos::app {

enum class SpanKind {
  kernel,   ///< a Kokkos kernel
  product,  ///< a matrix product, without the kernels of ours within it
  copy,     ///< Kokkos::deep_copy, between arrays or of one value
  section,  ///< a region of host code, without what it launches
};

/// One name under which time is counted.
struct Span {
  SpanKind kind = SpanKind::section;
  std::string name;     ///< the label; of a copy "copy to" or "fill of" and the first two parts of the array's label
  std::string product;  ///< of a kernel within a matrix product: the label of that product

  auto operator<=>(const Span&) const = default;
};

struct SpanTotals {
  std::size_t calls = 0;
  double seconds = 0.0;  ///< without the spans within it
  /// Sum over all calls. Empty if a call did not report its work; host code never does.
  std::optional<Work> work = Work{};

  void add_work(const std::optional<Work>& more);
};

using Profile = std::map<Span, SpanTotals>;

/// Listens while it lives, in place of any other tool; one at a time. On a device each launch is waited for, so that
/// its time is its own; kernels then do not overlap.
class StepProfile : private WorkListener {
 public:
  StepProfile();
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  /// What was heard within spans so far. The seconds of all spans add up to the time between the first one's begin and
  /// the last one's end, but for the time in which none was open.
  const Profile& profile() const { return profile_; }

 private:
  struct Callbacks;
  using Clock = std::chrono::steady_clock;
  using Entry = Profile::value_type;

  void launching(const char* label, const Work& work) override;
  void begin_kernel(const char* label);
  void begin(Span span, const std::optional<Work>& work);
  void end();
  /// Gives the time since the last event to the innermost span.
  void count_time();

  Profile profile_;
  std::string launching_;     ///< the kernel whose work was reported last
  Work work_;                 ///< what it does
  std::vector<Entry*> open_;  ///< innermost last
  Clock::time_point last_;
};

}  // namespace mylos::app
