#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Which ranks of a group share a node. Nodes are counted in the order of their lowest rank.
class NodeMap {
 public:
  /// `node_of_rank` has one number for each rank: equal numbers for ranks that share a node.
  explicit NodeMap(std::span<const std::size_t> node_of_rank);

  std::size_t ranks() const { return position_.size(); }
  std::size_t nodes() const { return first_.size() - 1; }
  std::size_t node_of(std::size_t rank) const { return position_[rank].node; }
  /// The place of a rank among the ranks of its node.
  std::size_t local_of(std::size_t rank) const { return position_[rank].local; }
  /// The ranks of a node, ascending.
  std::span<const std::size_t> ranks_of(std::size_t node) const {
    return std::span(ranks_).subspan(first_[node], first_[node + 1] - first_[node]);
  }
  std::size_t smallest_node() const { return smallest_; }
  std::size_t largest_node() const { return largest_; }

  /// There are several nodes, and one of them has several ranks.
  bool has_levels() const { return nodes() > 1 && largest_ > 1; }
  /// The sum over each node's ranks, and then over nodes, is the tree over ranks that Communicator promises:
  /// consecutive ranks, a power of two on every node but the last, which may have fewer.
  bool keeps_tree() const;

 private:
  struct Position {
    std::size_t node = 0, local = 0;
  };
  std::vector<Position> position_;  ///< of each rank
  std::vector<std::size_t> ranks_;  ///< node by node
  std::vector<std::size_t> first_;  ///< where each node begins in ranks_, and the end
  std::size_t smallest_ = 0, largest_ = 0;
};

/// A node for each rank.
NodeMap apart(std::size_t ranks);

/// One rank of a group, and where the group's ranks are.
struct RankGroup {
  std::size_t rank = 0;
  std::shared_ptr<const NodeMap> nodes;
  std::shared_ptr<const NodeMap> flat;  ///< the same ranks, each on a node of its own

  std::size_t size() const { return nodes->ranks(); }
};
RankGroup make_rank_group(std::size_t rank, std::span<const std::size_t> node_of_rank);

/// Members of a level (the nodes of a group, or the ranks of a node) in blocks of a power of two. In each round a
/// member exchanges with one block: that whose index is its own block's XOR the round. So all members of two blocks
/// exchange with each other in the same round, and the blocks that a member has met after 2^k rounds are a subtree of
/// the balanced tree over blocks.
struct BlockOrder {
  std::size_t members = 1;
  std::size_t block = 1;  ///< members of one, a power of two

  struct Range {
    std::size_t begin = 0, end = 0;
    std::size_t size() const { return end - begin; }
    bool contains(std::size_t member) const { return member >= begin && member < end; }
  };
  std::size_t blocks() const { return (members + block - 1) / block; }
  std::size_t rounds() const;
  /// Empty where there is no such block.
  Range met_by(std::size_t member, std::size_t round) const;
};

}  // namespace mylos::parallel
