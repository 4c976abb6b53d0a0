#pragma once

#include "parallel/communicator/exchanges/reduce_scatter_exchange.hpp"
#include "parallel/communicator/exchanges/transport.hpp"
#include "parallel/communicator/node_map.hpp"

#include <cstddef>
#include <memory>

/// The algorithm of each operation, chosen by array size and node layout, the same on every rank. Arrays are on the
/// host. The arrays and `group` must outlive the exchange. See Communicator for what each operation does. The last
/// parts of an array may be short or empty.
namespace mylos::parallel {

/// Settings that all operations share.
struct ExchangeRules {
  std::size_t bucket = default_bucket;
  SumOrder order = SumOrder::nodes;
};

std::unique_ptr<Exchange> make_all_reduce(Transport& transport, const RankGroup& group, const ExchangeRules& rules,
                                          ElementType type, std::size_t count, std::byte* data);
std::unique_ptr<Exchange> make_reduce_scatter(Transport& transport, const RankGroup& group, const ExchangeRules& rules,
                                              const SumArrays& arrays);
std::unique_ptr<Exchange> make_all_gather(Transport& transport, const RankGroup& group, const ExchangeRules& rules,
                                          const Parts& bytes, const std::byte* mine, std::byte* all);
std::unique_ptr<Exchange> make_broadcast(Transport& transport, const RankGroup& group, const ExchangeRules& rules,
                                         std::size_t root, std::size_t bytes, std::byte* data);
/// `all` is written only on the root.
std::unique_ptr<Exchange> make_gather(Transport& transport, const RankGroup& group, std::size_t root,
                                      std::size_t part_bytes, const std::byte* mine, std::byte* all);

}  // namespace mylos::parallel
