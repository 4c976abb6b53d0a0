#pragma once

#include "parallel/communicator/transport.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Returns the type of partial sums of arrays of `type`.
ElementType partial_type(ElementType type);

/// Sums blocks of ranks' arrays as a balanced tree, in the order in which BlockOrder delivers them. Sums of complete
/// subtrees are held at their level until their neighbour is complete, like the digits of a binary counter.
class TreeAccumulator {
 public:
  /// Sums `rounds` blocks. `memory` must hold waiting_sums sums of `stride` bytes each.
  TreeAccumulator(Transport& transport, ElementType type, std::size_t rounds, std::byte* memory, std::size_t stride);

  /// The destination of the total sum.
  struct Result {
    ElementType type;
    void* sums;
  };
  /// Adds the arrays of the block of `round`, in the order of ranks; `parts` is empty if there is no such block. The
  /// last round writes `result`, which may alias one of its arrays.
  void add(std::size_t round, std::span<const void* const> parts, std::size_t count, const Result& result);

 private:
  Transport& transport_;
  ElementType type_, partial_;
  std::size_t rounds_;
  std::vector<std::byte*> sums_;  ///< by level
  std::vector<bool> is_there_;
};

}  // namespace mylos::parallel
