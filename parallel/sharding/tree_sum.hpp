#pragma once

#include "core/device.hpp"

#include <string>
#include <vector>

/// Sums of arrays that arrive one after another. The order does not depend on how many arrays are summed at a time
/// elsewhere.
namespace mylos::parallel {

/// Sums `count` arrays of the same size as a balanced binary tree, neighbours first. Holds one partial sum per level.
/// `count` must be a power of two; the tree then has the same structure as a sum over ranks (see Communicator).
class TreeSum {
 public:
  TreeSum(const std::string& label, std::size_t size, std::size_t count);

  /// Adds the next array. With the last one, the total is written to `sum`, which may alias that array, and the next
  /// sum begins.
  void add(const ExecutionSpace& space, const Vector<float>& array, const Vector<float>& sum);

  /// Returns the number of partial sums held: the levels of a tree over `count` arrays.
  static std::size_t levels(std::size_t count);

 private:
  std::vector<Vector<float>> partial_;  ///< sums of 1, 2, 4, ... arrays
  std::size_t count_;
  std::size_t added_ = 0;
};

}  // namespace mylos::parallel
