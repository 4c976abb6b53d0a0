#pragma once

#include <cstddef>
#include <optional>

/// How many floating-point operations a kernel does and how many bytes it must move, by formula. An exponential counts
/// as the polynomial that core/kernels/math.hpp computes; integer work (random numbers for dropout) does not count.
/// Bytes are those of the arrays, each element once however often it is used, so that no kernel can move fewer from
/// memory; what stands in a cache comes faster than memory gives it. Arrays of one row (a bias, LayerNorm's weights,
/// column sums) do not count.
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

/// `count` elements, with so many operations and bytes for each.
inline Work work_of(std::size_t count, double flops, double bytes) {
  const auto elements = static_cast<double>(count);
  return {elements * flops, elements * bytes};
}

/// Is given the work of each kernel of ours just before the kernel is launched.
class WorkListener {
 public:
  virtual void launching(const char* label, const Work& work) = 0;

 protected:
  ~WorkListener() = default;
};

/// The listener of this process, one at a time; null = none. Set while no kernel is being launched.
void set_work_listener(WorkListener* listener);

/// Returns `label`, the name of the kernel that is launched next, and reports what that kernel does. Work that its
/// launcher cannot know is `nullopt`, and is not reported.
const char* with_work(const char* label, const std::optional<Work>& work);

}  // namespace mylos
