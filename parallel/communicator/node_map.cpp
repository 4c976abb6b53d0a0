#include "parallel/communicator/node_map.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>

namespace mylos::parallel {

NodeMap::NodeMap(std::span<const std::size_t> node_of_rank) {
  std::unordered_map<std::size_t, std::size_t> index;
  std::vector<std::size_t> sizes;
  for (const std::size_t node : node_of_rank) {
    const auto [found, is_new] = index.try_emplace(node, sizes.size());
    if (is_new) sizes.push_back(0);
    position_.push_back({found->second, sizes[found->second]++});
  }
  first_.assign(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), first_.begin() + 1);
  ranks_.resize(position_.size());
  for (std::size_t rank = 0; rank < position_.size(); ++rank) {
    ranks_[first_[position_[rank].node] + position_[rank].local] = rank;
  }
  if (sizes.empty()) return;
  smallest_ = *std::ranges::min_element(sizes);
  largest_ = *std::ranges::max_element(sizes);
}

bool NodeMap::keeps_tree() const {
  if (!std::has_single_bit(largest_) || ranks_of(0).size() != largest_) return false;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (node_of(rank) != rank / largest_) return false;
  }
  return true;
}

NodeMap apart(std::size_t ranks) {
  std::vector<std::size_t> nodes(ranks);
  std::iota(nodes.begin(), nodes.end(), std::size_t{0});
  return NodeMap(nodes);
}

RankGroup make_rank_group(std::size_t rank, std::span<const std::size_t> node_of_rank) {
  return {rank, std::make_shared<const NodeMap>(node_of_rank),
          std::make_shared<const NodeMap>(apart(node_of_rank.size()))};
}

std::size_t BlockOrder::rounds() const { return std::bit_ceil(blocks()); }

BlockOrder::Range BlockOrder::met_by(std::size_t member, std::size_t round) const {
  const std::size_t met = (member / block) ^ round;
  if (met >= blocks()) return {};
  return {met * block, std::min(members, (met + 1) * block)};
}

}  // namespace mylos::parallel
