#pragma once

#include "parallel/communicator/communicator.hpp"

#include <cstdint>
#include <utility>

namespace mylos::train {

/// Counts the bytes that this rank sends to other ranks between calls.
class SentBytes {
 public:
  /// Returns the bytes since the last call, or since construction.
  std::uint64_t since_last() {
    const std::uint64_t before = std::exchange(last_, parallel::sent_bytes());
    return last_ - before;
  }

 private:
  std::uint64_t last_ = parallel::sent_bytes();
};

}  // namespace mylos::train
