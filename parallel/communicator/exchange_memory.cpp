#include "parallel/communicator/exchange_memory.hpp"

#include <algorithm>

namespace mylos::parallel {

std::size_t exchange_bytes(std::size_t ranks, std::size_t bucket) {
  constexpr std::size_t least = std::size_t{1} << 20;  // exchanges of short arrays need at most twice this
  return ranks < 2 ? 0 : 2 * std::max(bucket, least);
}

std::size_t device_exchange_bytes(std::size_t ranks, std::size_t bucket) {
  return exchange_bytes(ranks, device_bucket(bucket));
}

}  // namespace mylos::parallel
