#include "parallel/communicator/communicator.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace mylos::parallel {
namespace {

std::atomic<std::uint64_t> sent{0}, messages{0}, message_bytes{0}, network_bytes{0};
std::atomic<std::uint64_t> waited_nanoseconds{0};

}  // namespace

void Event::wait(const ExecutionSpace& space) const {
  using Clock = std::chrono::steady_clock;
  if (!operation_) return;
  const Clock::time_point begin = Clock::now();
  operation_->wait(space);
  waited_nanoseconds +=
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

double waited_seconds() { return 1e-9 * static_cast<double>(waited_nanoseconds.load()); }

std::uint64_t sent_bytes() { return sent; }

void count_sent(std::size_t bytes) { sent += bytes; }

Traffic traffic() { return {messages, message_bytes, network_bytes}; }

void count_message(std::size_t bytes, bool leaves_node) {
  ++messages;
  message_bytes += bytes;
  if (leaves_node) network_bytes += bytes;
}

std::size_t exchange_bytes(std::size_t ranks, std::size_t bucket) {
  constexpr std::size_t least = std::size_t{1} << 20;  // exchanges of short arrays need at most twice this
  return ranks < 2 ? 0 : 2 * std::max(bucket, least);
}

std::size_t device_exchange_bytes(std::size_t ranks, std::size_t bucket) {
  return exchange_bytes(ranks, device_bucket(bucket));
}

std::size_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return 4;
    case ElementType::float64:
    case ElementType::int64:
      return 8;
    case ElementType::bfloat16:
      return 2;
    case ElementType::byte:
      return 1;
  }
  fail("an element type of no size");
}

Buffer buffer_of(const Vector<float>& vector) {
  return {vector.data(), vector.size(), ElementType::float32, MemoryKind::device};
}

Buffer buffer_of(const Vector<bfloat16>& vector) {
  return {vector.data(), vector.size(), ElementType::bfloat16, MemoryKind::device};
}

Buffer buffer_of(const Vector<std::byte>& vector) {
  return {vector.data(), vector.size(), ElementType::byte, MemoryKind::device};
}

}  // namespace mylos::parallel
