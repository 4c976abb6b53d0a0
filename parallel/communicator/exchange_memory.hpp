#pragma once

#include <algorithm>
#include <cstddef>

namespace mylos::parallel {

/// Default of Communicator::set_bucket.
inline constexpr std::size_t default_bucket = std::size_t{8} << 20;

/// Returns the maximum bytes that a rank needs to receive data of other ranks, in addition to the arrays of operations:
/// twice the bucket, and at least 2 MiB, for any number of ranks.
constexpr std::size_t exchange_bytes(std::size_t ranks, std::size_t bucket = default_bucket) {
  constexpr std::size_t least = std::size_t{1} << 20;  // exchanges of short arrays need at most twice this
  return ranks < 2 ? 0 : 2 * std::max(bucket, least);
}
/// Returns the bucket of ordered sums over NCCL. It is larger, because messages between GPUs must be longer to outweigh
/// their launch time.
constexpr std::size_t device_bucket(std::size_t bucket) { return 4 * bucket; }
/// Returns exchange_bytes in device memory, for a rank whose ordered sums go through NCCL; one allocation serves all
/// its groups. NCCL's own buffers are not included.
constexpr std::size_t device_exchange_bytes(std::size_t ranks, std::size_t bucket = default_bucket) {
  return exchange_bytes(ranks, device_bucket(bucket));
}

}  // namespace mylos::parallel
