#pragma once

#include "core/device.hpp"
#include "core/unit_hooks.hpp"
#include "core/work.hpp"

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <array>
#include <cstddef>

namespace mylos {

/// Keeps the host from filling the device's queue, which in CUDA holds about 1,024 launches. A launch into a full queue
/// blocks inside the driver, and with it the launches of other threads, such as those of exchanges between ranks.
template <class Mark = LaunchMark>
class LaunchBound {
 public:
  /// Launches between marks. The device then has at least as many launches to work on when the host waits.
  static constexpr std::size_t interval = 256;

  /// If this thread has made `interval` launches since the last mark, sets a mark on `space`, and waits for the one
  /// before it. The queue then holds at most two intervals, and the launches between two calls.
  void operator()(const auto& space) {
    if (launches() - launched_ < interval) return;
    const Kokkos::Profiling::ScopedRegion region("mylos::LaunchBound::mark");
    launched_ = launches();
    marks_[next_].set(space);
    next_ = 1 - next_;
    marks_[next_].wait();
  }

 private:
  std::array<Mark, 2> marks_;
  std::size_t next_ = 0;               ///< the older one of the two
  std::size_t launched_ = launches();  ///< at the last mark
};

/// Hooks of a pass that keep its launches within a bound.
class BoundedHooks final : public UnitHooks {
 public:
  /// All must outlive this object.
  BoundedHooks(UnitHooks& hooks, const ExecutionSpace& space, LaunchBound<>& bound)
      : hooks_(hooks), space_(space), bound_(bound) {}

  void acquire(std::size_t unit) override { hooks_.acquire(unit); }
  void release(std::size_t unit) override {
    hooks_.release(unit);
    bound_(space_);
  }
  void gradients_ready(std::size_t unit) override { hooks_.gradients_ready(unit); }

 private:
  UnitHooks& hooks_;
  const ExecutionSpace& space_;
  LaunchBound<>& bound_;
};

}  // namespace mylos
