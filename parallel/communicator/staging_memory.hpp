#pragma once

#include "core/device.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace mylos::parallel {

/// The sizes of the free blocks of an StagingMemory, and of all its blocks. Plans use it instead of an StagingMemory,
/// because they allocate no memory.
class StagingBlocks {
 public:
  /// Takes the smallest free block that has at least `bytes` and is at most about twice as large, else a new block, and
  /// returns its size.
  std::size_t take(std::size_t bytes);
  void give_back(std::size_t size) { free_.push_back(size); }
  /// Bytes of all blocks, whether in use or not.
  std::size_t size() const { return bytes_; }

 private:
  std::vector<std::size_t> free_;
  std::size_t bytes_ = 0;
};

/// A pool of host memory for copies of device arrays. It is pinned if there are devices, so that copies need no
/// staging. Blocks are reused until Kokkos is finalised, because pinning memory is slow.
class StagingMemory {
 public:
  /// Uninitialised memory.
  using Block = std::shared_ptr<std::byte>;

  StagingMemory();
  /// Returns a block of at least `bytes`. It is not handed out again until the last copy of the pointer is destroyed.
  /// Called by the launching thread; blocks may be released in any thread. Errors: Kokkos's if memory runs out.
  Block take(std::size_t bytes);
  /// Bytes of all blocks, whether in use or not.
  std::size_t size() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace mylos::parallel
