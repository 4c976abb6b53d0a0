#pragma once

#include <cstddef>
#include <optional>

/// Floating-point operations and minimum memory traffic of kernels, by formula. An exponential counts as the polynomial
/// computed in core/kernels/math.hpp; integer work (random numbers for dropout) does not count. Bytes count each array
/// element once, however often it is used, so they are a lower bound for the traffic to memory; data in caches may be
/// faster than the memory bandwidth. Arrays of one row (a bias, LayerNorm's weights, column sums) do not count.
namespace mylos {

struct Work {
  double flops = 0.0;
  double bytes = 0.0;

  Work& operator+=(const Work& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
  friend Work operator+(Work a, const Work& b) { return a += b; }
  bool operator==(const Work&) const = default;
};

/// Returns the work for `count` elements, given the operations and bytes per element.
inline Work work_of(std::size_t count, double flops, double bytes) {
  const auto elements = static_cast<double>(count);
  return {elements * flops, elements * bytes};
}

/// Receives the work of each of Mylos' own kernels just before its launch.
class WorkListener {
 public:
  virtual void launching(const char* label, const Work& work) = 0;

 protected:
  ~WorkListener() = default;
};

/// Sets the listener of this process; null for none. Must not be called while a kernel is being launched.
void set_work_listener(WorkListener* listener);

/// Returns the number of kernels and matrix products that this thread has launched so far.
std::size_t launches();
/// Counts a launch.
void note_launch();

/// Counts a kernel's launch, reports its work to the listener, and returns `label`, the kernel's name. Work is nullopt
/// if the launcher cannot know it, and is not reported then.
const char* with_work(const char* label, const std::optional<Work>& work);

}  // namespace mylos
