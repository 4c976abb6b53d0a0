#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Maps the ranks of a group to nodes. Nodes are numbered in the order of their lowest rank.
class NodeMap {
 public:
  /// `node_of_rank` has one number per rank; ranks on the same node have equal numbers.
  explicit NodeMap(std::span<const std::size_t> node_of_rank);

  std::size_t ranks() const { return position_.size(); }
  std::size_t nodes() const { return first_.size() - 1; }
  std::size_t node_of(std::size_t rank) const { return position_[rank].node; }
  /// Index of a rank among the ranks of its node.
  std::size_t local_of(std::size_t rank) const { return position_[rank].local; }
  /// The ranks of a node, in ascending order.
  std::span<const std::size_t> ranks_of(std::size_t node) const {
    return std::span(ranks_).subspan(first_[node], first_[node + 1] - first_[node]);
  }
  std::size_t smallest_node() const { return smallest_; }
  std::size_t largest_node() const { return largest_; }

  /// Returns true if there are several nodes, and at least one has several ranks.
  bool has_levels() const { return nodes() > 1 && largest_ > 1; }
  /// Returns true if summing over each node's ranks and then over nodes gives the tree over ranks described at
  /// Communicator: consecutive ranks share a node, and each node has the same power of two of ranks; the last may have
  /// fewer.
  bool keeps_tree() const;

 private:
  struct Position {
    std::size_t node = 0, local = 0;
  };
  std::vector<Position> position_;  ///< by rank
  std::vector<std::size_t> ranks_;  ///< node by node
  std::vector<std::size_t> first_;  ///< begin of each node in ranks_, and the end
  std::size_t smallest_ = 0, largest_ = 0;
};

/// Returns a map in which each rank has its own node.
NodeMap apart(std::size_t ranks);

/// One rank of a group, with the nodes of the group's ranks.
struct RankGroup {
  std::size_t rank = 0;
  std::shared_ptr<const NodeMap> nodes;
  std::shared_ptr<const NodeMap> flat;  ///< the same ranks, each on its own node

  std::size_t size() const { return nodes->ranks(); }
};
RankGroup make_rank_group(std::size_t rank, std::span<const std::size_t> node_of_rank);

/// Divides the members of a level (the nodes of a group, or the ranks of a node) into blocks of a power of two. In each
/// round a member exchanges with the block whose index is its own block's index XOR the round. All members of two
/// blocks therefore exchange with each other in the same round, and the blocks that a member has met after 2^k rounds
/// form a subtree of the balanced tree over blocks.
struct BlockOrder {
  std::size_t members = 1;
  std::size_t block = 1;  ///< members per block, a power of two

  struct Range {
    std::size_t begin = 0, end = 0;
    std::size_t size() const { return end - begin; }
    bool contains(std::size_t member) const { return member >= begin && member < end; }
  };
  std::size_t blocks() const { return (members + block - 1) / block; }
  std::size_t rounds() const;
  /// Returns the members of the block met in a round; empty if there is no such block.
  Range met_by(std::size_t member, std::size_t round) const;
};

}  // namespace mylos::parallel
