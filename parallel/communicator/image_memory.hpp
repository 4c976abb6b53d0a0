#pragma once

#include "core/device.hpp"

#include <cstddef>
#include <memory>

namespace mylos::parallel {

/// Host memory for images of device arrays, pinned where there are devices, so that these copy to and from it without
/// a detour. It is kept from one exchange to the next, until Kokkos ends: the system takes long to pin memory.
class ImageMemory {
 public:
  /// Not filled.
  using Block = std::shared_ptr<std::byte>;

  ImageMemory();
  /// At least `bytes`, of this one alone until the last copy of the block goes. Called by the thread that launches;
  /// blocks may go in any other. Errors: Kokkos' where there is no memory.
  Block take(std::size_t bytes);
  /// Bytes of all blocks, taken or not.
  std::size_t size() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace mylos::parallel
