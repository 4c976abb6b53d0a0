#pragma once

#include "core/device.hpp"

#include <cstddef>

/// Measures the memory bandwidth available to a kernel that only streams.
namespace mylos::app {

/// Runs a triad a = s b - a with two reads and one write per element, as in STREAM (McCalpin), over arrays larger than
/// any cache. It overwrites an array that it also reads: a store to a third array would first read its cache line, and
/// because STREAM does not count that read, the rate would be too low.
class MemoryBandwidth {
 public:
  /// Allocates two arrays of four times the last-level cache each, at least 128 MiB and at most 512 MiB; on GPUs 512
  /// MiB.
  MemoryBandwidth();

  /// Returns the bytes per second of one pass, counting 12 bytes per element. Errors: std::runtime_error if the result
  /// is wrong.
  double measure();

 private:
  std::size_t size_;
  ExecutionSpace space_;
  Vector<float> a_, b_;
  float expected_;  ///< value of every element of a
};

}  // namespace mylos::app
