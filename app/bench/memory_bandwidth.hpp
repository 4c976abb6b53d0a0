#pragma once

#include "core/device.hpp"

#include <cstddef>

/// What memory gives a kernel that does nothing else.
namespace mylos::app {

/// Two reads and a write an element as in STREAM's triad (McCalpin), over arrays that no cache holds: a = s b - a. It
/// writes where it has read, because what a store fetches first and STREAM does not count would make the rate too low.
class MemoryBandwidth {
 public:
  /// Takes memory: two arrays of four times the last cache each, at least 128 MiB and at most 512 MiB.
  MemoryBandwidth();

  /// Bytes a second of one pass, 12 an element. Errors: std::runtime_error where the result is wrong.
  double measure();

 private:
  std::size_t size_;
  ExecutionSpace space_;
  Vector<float> a_, b_;
  float expected_;  ///< elements of a
};

}  // namespace mylos::app
