#pragma once

#include "core/device.hpp"

#include <string>
#include <vector>

/// Sums of arrays that come one after the other, in an order that does not depend on how many come at once elsewhere.
namespace mylos::parallel {

/// Adds `count` arrays of one size as a balanced binary tree: neighbours first. Holds one partial sum for each level.
/// With a power of two of arrays the tree is that of the ranks' sums one level on (Communicator).
class TreeSum {
 public:
  TreeSum(const std::string& label, std::size_t size, std::size_t count);

  /// The next array. With the last one `sum`, which may be that array, becomes the sum of all, and the next sum begins.
  void add(const ExecutionSpace& space, const Vector<float>& array, const Vector<float>& sum);

  /// Partial sums that are held: the levels of a tree over `count` arrays.
  static std::size_t levels(std::size_t count);

 private:
  std::vector<Vector<float>> partial_;  ///< of 1, 2, 4, ... arrays
  std::size_t count_;
  std::size_t added_ = 0;
};

}  // namespace mylos::parallel
