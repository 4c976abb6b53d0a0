#pragma once

#include "parallel/communicator/communicator.hpp"
#include "parallel/communicator/staging_memory.hpp"

#include <cstddef>

namespace mylos::parallel {

/// True if kernel launches return before the kernel has run. A host thread must then fence before it reads results.
inline constexpr bool launches_asynchronously = !std::is_same_v<ExecutionSpace, Kokkos::DefaultHostExecutionSpace>;

/// Host memory for an operation on a buffer: the buffer's own memory, or a copy if the host cannot access it.
class StagedArray {
 public:
  enum class Content { copied, undefined };

  /// For a buffer in device memory, returns when everything launched on `space` so far has ended. If `content` is
  /// `copied`, a copy holds the buffer's values.
  StagedArray(const ExecutionSpace& space, const Buffer& buffer, Content content, StagingMemory& memory);

  std::byte* data() const { return data_; }
  const Buffer& buffer() const { return buffer_; }
  bool is_copy() const { return copy_ != nullptr; }
  /// Copies a modified copy back to the buffer, before later launches on `space`.
  void write_back(const ExecutionSpace& space) const;
  /// Gives the memory of a copy back. data() must not be used afterwards.
  void release() { copy_.reset(); }

 private:
  Buffer buffer_;
  StagingMemory::Block copy_;
  std::byte* data_;
};

}  // namespace mylos::parallel
