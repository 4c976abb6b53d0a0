#pragma once

#include "parallel/communicator/exchanges/exchange_size.hpp"
#include "parallel/communicator/exchanges/parts.hpp"
#include "parallel/communicator/exchanges/transport.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

/// Exchanges along trees, in which the number of rounds grows with the logarithm of the number of ranks. Used for short
/// arrays, and for arrays that one rank has and all need.
namespace mylos::parallel {

/// The position of a rank in the binomial tree over `ranks` with root 0. A subtree consists of consecutive ranks, as in
/// the balanced tree that Communicator promises for sums.
struct TreePosition {
  std::optional<std::size_t> parent;
  std::vector<std::size_t> children;  ///< in ascending order, like their subtrees
  std::size_t end = 0;                ///< end of this rank's subtree [rank, end)
};
TreePosition tree_position(std::size_t rank, std::size_t ranks);

/// A broadcast of the root's array in pieces: along a tree over nodes, and in each node along a tree over its ranks.
class BroadcastExchange final : public Exchange {
 public:
  BroadcastExchange(Transport& transport, std::size_t rank, const NodeMap& map, std::size_t bucket, std::size_t root,
                    std::size_t bytes, std::byte* data);
  Progress advance() override;

 private:
  std::size_t size_of(std::size_t piece) const { return std::min(piece_, bytes_ - piece * piece_); }

  Transport& transport_;
  std::size_t bytes_;
  std::byte* data_;
  std::size_t piece_, pieces_;
  std::optional<std::size_t> parent_;
  std::vector<std::size_t> children_;
  Steps arriving_, passed_on_;  ///< by piece
};

/// A sum along a tree: each rank adds the arrays of its subtree, and rank 0 obtains the total.
class TreeSumExchange final : public Exchange {
 public:
  /// `sums` has room for `count` elements of partial_type(type), and may alias `data` if the type is the same. `memory`
  /// has room for twice as many.
  struct Arrays {
    ElementType type;
    std::size_t count;
    const std::byte* data;
    std::byte* sums;
    std::byte* memory;
  };
  TreeSumExchange(Transport& transport, std::size_t rank, std::size_t ranks, const Arrays& arrays);
  Progress advance() override;

 private:
  Transport& transport_;
  TreePosition position_;
  Arrays arrays_;
  std::size_t bytes_;
  bool begun_ = false;
  Steps added_;  ///< by child
  Steps sent_;   ///< one step
};

/// A gather (up) or scatter (down) along the tree over ranks, numbered from a root. `array` holds the parts of the
/// rank's subtree, its own first. `bytes`: the parts of ranks in the order of the tree; the last ones may be short.
class TreePartsExchange final : public Exchange {
 public:
  enum class Direction { up, down };
  TreePartsExchange(Transport& transport, std::size_t rank, std::size_t ranks, std::size_t root, Direction direction,
                    const Parts& bytes, std::byte* array);
  Progress advance() override;

 private:
  void begin_children(Messages& messages);
  void begin_parent(Messages& messages);
  /// Bytes of the parts of the ranks [first, end) of the tree.
  std::size_t size_of(std::size_t first, std::size_t end) const;

  std::size_t ranks_, root_, number_;  ///< number of this rank in the tree, whose root is 0
  TreePosition position_;
  Direction direction_;
  Parts bytes_;
  std::byte* array_;
  int stage_ = 0;
  std::unique_ptr<Messages> messages_;
};

}  // namespace mylos::parallel
