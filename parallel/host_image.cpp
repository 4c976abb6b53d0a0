#include "parallel/host_image.hpp"

#include "parallel/operation_checks.hpp"

namespace mylos::parallel {
namespace {

Vector<std::byte> bytes_in(const Buffer& buffer) {
  return Vector<std::byte>(static_cast<std::byte*>(buffer.data), bytes_of(buffer));
}

PinnedVector<std::byte> bytes_of_image(const ImageMemory::Block& image, const Buffer& buffer) {
  return PinnedVector<std::byte>(image.get(), bytes_of(buffer));
}

}  // namespace

HostImage::HostImage(const ExecutionSpace& space, const Buffer& buffer, Content content,
                     [[maybe_unused]] ImageMemory& memory)
    : buffer_(buffer), data_(static_cast<std::byte*>(buffer.data)) {
  if (buffer.place == Place::host) return;
  if constexpr (!runs_on_host) {
    copy_ = memory.take(bytes_of(buffer));
    data_ = copy_.get();
    if (content == Content::copied) Kokkos::deep_copy(space, bytes_of_image(copy_, buffer), bytes_in(buffer));
  }
  if constexpr (launches_asynchronously) space.fence("mylos::communicator::begin");
}

void HostImage::write_back(const ExecutionSpace& space) const {
  if constexpr (!runs_on_host) {
    if (copy_ == nullptr) return;
    Kokkos::deep_copy(space, bytes_in(buffer_), bytes_of_image(copy_, buffer_));
    space.fence("mylos::communicator::write_back");
  }
}

}  // namespace mylos::parallel
