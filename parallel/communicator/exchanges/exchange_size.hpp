#pragma once

#include "parallel/communicator/communicator.hpp"
#include "parallel/communicator/node_map.hpp"

#include <cstddef>

namespace mylos::parallel {

/// Maximum number of arrays that an exchange sums at a time.
inline constexpr std::size_t most_parts = 8;

/// Returns the type of partial sums of arrays of `type`.
constexpr ElementType partial_type(ElementType type) {
  return type == ElementType::bfloat16 ? ElementType::float32 : type;
}

/// Block and message sizes for exchanging long arrays. They are chosen so that a rank holds about twice the bucket of
/// received data, for any number of ranks: with many ranks, fewer of them exchange at a time, and messages stay long.
struct ExchangeSize {
  BlockOrder nodes;               ///< blocks of nodes that exchange at a time; blocks of ranks if each is on its own
                                  ///< node
  std::size_t local_block = 1;    ///< ranks of a node that exchange at a time
  std::size_t message_bytes = 0;  ///< maximum size of a message
};
ExchangeSize exchange_size(const NodeMap& map, std::size_t bucket);

/// Returns the number of partial sums that are held while blocks are summed in this order.
std::size_t waiting_sums(const BlockOrder& order);

/// Returns the node map that an exchange of `group` uses. Each rank counts as a node of its own if node levels are
/// useless, or if the smallest node would have too many parts per rank. With SumOrder::ranks, sums also ignore nodes if
/// that is necessary to keep the tree over ranks.
const NodeMap& levels_of_sum(const RankGroup& group, SumOrder order);
const NodeMap& levels_of_copy(const RankGroup& group);

}  // namespace mylos::parallel
