#pragma once

#include "parallel/communicator/communicator.hpp"
#include "parallel/communicator/node_map.hpp"

#include <cstddef>

namespace mylos::parallel {

/// Arrays that an exchange sums at a time, at most.
inline constexpr std::size_t most_parts = 8;

/// In what portions long arrays are exchanged, so that a rank holds about twice the bucket for what others send,
/// whatever the number of ranks: with many ranks fewer of them exchange at a time, and messages stay long.
struct ExchangeSize {
  BlockOrder nodes;               ///< that exchange at a time; ranks, where each is on a node of its own
  std::size_t local_block = 1;    ///< the same among the ranks of a node
  std::size_t message_bytes = 0;  ///< of one message, at most
};
ExchangeSize exchange_size(const NodeMap& map, std::size_t bucket);

/// Partial sums that are held while `members` are summed in blocks of `block`.
std::size_t waiting_sums(const BlockOrder& order);

/// The nodes that an exchange of `group` distinguishes: none where that has no use, or where there would be too many
/// parts for the ranks of a small node. Sums keep the tree over ranks with SumOrder::ranks.
const NodeMap& levels_of_sum(const RankGroup& group, SumOrder order);
const NodeMap& levels_of_copy(const RankGroup& group);

}  // namespace mylos::parallel
