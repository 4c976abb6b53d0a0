#pragma once

#include "core/device.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Copies parts of device arrays to the host and back. If the host can access device memory, read() copies nothing.
class HostPiece {
 public:
  /// `elements` is the maximum size of a part.
  explicit HostPiece(std::size_t elements) : buffer_(runs_on_host ? 0 : elements) {}

  /// Returns the values of `part`, valid until the next call.
  std::span<const float> read(const Vector<float>& part) {
    if constexpr (runs_on_host) return {part.data(), part.size()};
    Kokkos::deep_copy(Unmanaged(buffer_.data(), part.size()), part);
    return {buffer_.data(), part.size()};
  }
  static void write(std::span<const float> values, const Vector<float>& part) {
    if constexpr (runs_on_host) {
      std::ranges::copy(values, part.data());
    } else {
      Kokkos::deep_copy(part, ConstUnmanaged(values.data(), values.size()));
    }
  }

 private:
  using Unmanaged = Kokkos::View<float*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>;
  using ConstUnmanaged = Kokkos::View<const float*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>;

  std::vector<float> buffer_;
};

}  // namespace mylos::parallel
