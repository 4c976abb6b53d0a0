#pragma once

#include "parallel/communicator/communicator.hpp"
#include "parallel/communicator/image_memory.hpp"

#include <cstddef>

namespace mylos::parallel {

/// What is launched returns before it has run, so that a host thread must fence before it reads.
inline constexpr bool launches_asynchronously = !std::is_same_v<ExecutionSpace, Kokkos::DefaultHostExecutionSpace>;

/// A buffer's memory for an operation that works on the host: the buffer's own, or a copy where the host cannot reach
/// it.
class HostImage {
 public:
  enum class Content { copied, undefined };

  /// Returns when what was launched on `space` before has ended, where `content` is copied.
  HostImage(const ExecutionSpace& space, const Buffer& buffer, Content content, ImageMemory& memory);

  std::byte* data() const { return data_; }
  const Buffer& buffer() const { return buffer_; }
  bool is_copy() const { return copy_ != nullptr; }
  /// Brings what was written into a copy back to the buffer, before what is launched on `space` from here on.
  void write_back(const ExecutionSpace& space) const;

 private:
  Buffer buffer_;
  ImageMemory::Block copy_;
  std::byte* data_;
};

}  // namespace mylos::parallel
