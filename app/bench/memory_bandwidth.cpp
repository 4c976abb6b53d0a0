#include "app/bench/memory_bandwidth.hpp"

#include "core/base/error.hpp"
#include "core/kernels/chunks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace mylos::app {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// Returns the size of the L3 cache in bytes as reported by the system, or 0.
std::size_t last_cache() { return static_cast<std::size_t>(std::max(0L, ::sysconf(_SC_LEVEL3_CACHE_SIZE))); }

std::size_t array_bytes() {
  const std::size_t most = 512 * mebibyte;
  return runs_on_host ? std::clamp(4 * last_cache(), 128 * mebibyte, most) : most;
}

void triad(const ExecutionSpace& space, const Vector<float>& a, const Vector<float>& b) {
  float* const updated = a.data();
  const float* const read = b.data();
  for_each_element(
      "mylos::bench::triad", space, a.size(),
      KOKKOS_LAMBDA(const float& other, float& value) { value = 3.0f * other - value; }, read, updated);
}

}  // namespace

MemoryBandwidth::MemoryBandwidth()
    : size_(array_bytes() / sizeof(float)),
      a_(uninitialized<float>("mylos::bench::triad_a", size_)),
      b_(uninitialized<float>("mylos::bench::triad_b", size_)),
      expected_(1.0f) {
  Kokkos::deep_copy(a_, expected_);
  Kokkos::deep_copy(b_, 1.0f);
}

double MemoryBandwidth::measure() {
  LaunchTime begin, end;
  begin.set(space_);
  triad(space_, a_, b_);
  end.set(space_);
  const double seconds = end.seconds_since(begin);
  expected_ = 3.0f - expected_;
  const auto last = Kokkos::create_mirror_view_and_copy(HostSpace(), slice(a_, size_ - 1, size_));
  ensure(last(0) == expected_, fmt::format("triad: the last element is {}, not {}", last(0), expected_));
  return 3.0 * static_cast<double>(size_ * sizeof(float)) / seconds;
}

}  // namespace mylos::app
