#include "parallel/communicator/staged_array.hpp"

#include "parallel/communicator/operation_checks.hpp"

namespace mylos::parallel {
namespace {

/// True if the host cannot access device arrays. A test also compiles this file for a host build with this set to true.
#if defined(MYLOS_DEVICE_MEMORY_APART)
constexpr bool is_apart = true;
#else
constexpr bool is_apart = !runs_on_host;
#endif

Vector<std::byte> bytes_in(const Buffer& buffer) {
  return Vector<std::byte>(static_cast<std::byte*>(buffer.data), bytes_of(buffer));
}

PinnedVector<std::byte> bytes_of_image(const StagingMemory::Block& image, const Buffer& buffer) {
  return PinnedVector<std::byte>(image.get(), bytes_of(buffer));
}

/// In tests: overwrites an image with values that no array has, as if it were uninitialised.
void spoil([[maybe_unused]] const ExecutionSpace& space, [[maybe_unused]] const PinnedVector<std::byte>& image) {
  if constexpr (is_apart && runs_on_host) Kokkos::deep_copy(space, image, std::byte{0xff});
}

}  // namespace

StagedArray::StagedArray(const ExecutionSpace& space, const Buffer& buffer, Content content,
                         [[maybe_unused]] StagingMemory& memory)
    : buffer_(buffer), data_(static_cast<std::byte*>(buffer.data)) {
  if (buffer.memory == MemoryKind::host) return;
  if constexpr (is_apart) {
    copy_ = memory.take(bytes_of(buffer));
    data_ = copy_.get();
    spoil(space, bytes_of_image(copy_, buffer));
    if (content == Content::copied) Kokkos::deep_copy(space, bytes_of_image(copy_, buffer), bytes_in(buffer));
  }
  if constexpr (is_apart || launches_asynchronously) space.fence("mylos::communicator::begin");
}

void StagedArray::write_back(const ExecutionSpace& space) const {
  if constexpr (is_apart) {
    if (copy_ == nullptr) return;
    Kokkos::deep_copy(space, bytes_in(buffer_), bytes_of_image(copy_, buffer_));
    space.fence("mylos::communicator::write_back");
  }
}

}  // namespace mylos::parallel
