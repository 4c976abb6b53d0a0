#include "parallel/communicator/exchanges/exchange_size.hpp"

#include <algorithm>
#include <bit>

namespace mylos::parallel {
namespace {

constexpr std::size_t page = 4096;
/// More peers at a time would not make an exchange faster, only its messages shorter.
constexpr std::size_t most_peers = most_parts, least_peers = 2;
/// Messages shorter than long_message are dominated by latency. shortest_message matters only for the small buckets of
/// tests.
constexpr std::size_t long_message = 16 * page, shortest_message = 4 * page, longest_message = std::size_t{1} << 30;
/// Maximum ratio of ranks between the largest and the smallest node.
constexpr std::size_t most_uneven = 16;

/// Returns the maximum number of messages and partial sums that a rank holds while two units of an exchange are under
/// way.
std::size_t held_messages(const NodeMap& map, std::size_t peers) {
  const BlockOrder nodes{map.nodes(), peers};
  const std::size_t received = nodes.blocks() == 1 ? nodes.members - 1 : peers;
  if (map.largest_node() == 1) return 2 * received + waiting_sums(nodes);
  const BlockOrder local{map.largest_node(), peers};
  const std::size_t parts_of_node = (map.largest_node() + map.smallest_node() - 1) / map.smallest_node();
  const std::size_t of_node = 2 * std::min(local.members, peers) + waiting_sums(local);
  return of_node + 2 * parts_of_node * std::min(nodes.members, peers) + 2 * received + waiting_sums(nodes);
}

}  // namespace

std::size_t waiting_sums(const BlockOrder& order) {
  return order.blocks() == 1 ? 0 : static_cast<std::size_t>(std::bit_width(order.rounds()));
}

ExchangeSize exchange_size(const NodeMap& map, std::size_t bucket) {
  std::size_t peers = most_peers;
  const auto fitting = [&] { return 2 * bucket / std::max<std::size_t>(held_messages(map, peers), 1); };
  while (peers > least_peers && fitting() < long_message) peers /= 2;
  const std::size_t bytes = std::clamp(fitting() / page * page, shortest_message, longest_message);
  return {{map.nodes(), peers}, peers, bytes};
}

const NodeMap& levels_of_copy(const RankGroup& group) {
  const NodeMap& nodes = *group.nodes;
  return nodes.has_levels() && nodes.largest_node() <= most_uneven * nodes.smallest_node() ? nodes : *group.flat;
}

const NodeMap& levels_of_sum(const RankGroup& group, SumOrder order) {
  return order == SumOrder::ranks && !group.nodes->keeps_tree() ? *group.flat : levels_of_copy(group);
}

}  // namespace mylos::parallel
