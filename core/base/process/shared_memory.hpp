#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mylos {

/// Memory that processes of one machine share. It has no name in a file system, so that the system frees it when the
/// last of these processes drops it or ends, however that process ends.
class SharedMemory {
 public:
  /// Identifies the memory to another process. Sent as raw bytes between processes of one architecture.
  struct Location {
    std::int64_t process = 0, descriptor = -1;  ///< -1: there is no memory
    std::uint64_t device = 0, file = 0;         ///< distinguish it from a file of a process in another PID namespace
    std::uint64_t bytes = 0;
  };

  /// Reserves `bytes`, at least one, which this process fills. Touching them later does not fail for lack of memory.
  /// Errors: std::runtime_error with the system's reason.
  explicit SharedMemory(std::size_t bytes);
  /// Maps the memory of another process, to be read only. All of it is resident in this process from now on, so that
  /// resident memory does not grow later. Errors: std::runtime_error with the system's reason, or if the other process
  /// is not visible.
  explicit SharedMemory(const Location& location);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Returns where other processes find the memory, which this process has reserved and not sealed.
  Location location() const;
  /// Returns the memory for filling it, in the process that has reserved it, until seal().
  std::span<std::byte> writable();
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// From now on this process can only read the memory too, and no other can map it any more.
  void seal();

 private:
  std::size_t size_;
  int descriptor_ = -1;  ///< open from reserving to sealing
  std::byte* data_ = nullptr;
};

}  // namespace mylos
