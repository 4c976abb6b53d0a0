#pragma once

#include "parallel/communicator/transport.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace mylos::parallel {

/// What partial sums of arrays of `type` are.
ElementType partial_type(ElementType type);

/// Adds blocks of ranks' arrays as a balanced tree, as they come in the order of BlockOrder: sums of whole subtrees
/// wait at their level for their neighbours, as a binary counter's digits do for their carries.
class TreeAccumulator {
 public:
  /// `rounds` of blocks; `memory` has room for waiting_sums of `stride` bytes each.
  TreeAccumulator(Transport& transport, ElementType type, std::size_t rounds, std::byte* memory, std::size_t stride);

  /// Where the sum of all goes.
  struct Result {
    ElementType type;
    void* sums;
  };
  /// The arrays of the block of `round`, in the order of ranks: none where it is absent. With the last round `result`
  /// is written, which may be one of its arrays.
  void add(std::size_t round, std::span<const void* const> parts, std::size_t count, const Result& result);

 private:
  Transport& transport_;
  ElementType type_, partial_;
  std::size_t rounds_;
  std::vector<std::byte*> sums_;  ///< of each level
  std::vector<bool> is_there_;
};

}  // namespace mylos::parallel
