#pragma once

#include "parallel/communicator/exchange_size.hpp"
#include "parallel/communicator/transport.hpp"
#include "parallel/communicator/tree_accumulator.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

/// Exchanges along trees, whose rounds grow with the logarithm of the number of ranks: for short arrays, and for those
/// that one rank has and all need.
namespace mylos::parallel {

/// A rank's place in the binomial tree over `ranks`, whose root is 0. A subtree has consecutive ranks, as the balanced
/// tree that Communicator promises for sums has.
struct TreePosition {
  std::optional<std::size_t> parent;
  std::vector<std::size_t> children;  ///< ascending, as their subtrees
  std::size_t end = 0;                ///< of the ranks below this one: its subtree is [rank, end)
};
TreePosition tree_position(std::size_t rank, std::size_t ranks);

/// The array of the root comes to all ranks in pieces: along a tree over nodes, and in each node along one over its
/// ranks.
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
  std::size_t piece_, pieces_, asked_ = 0, arrived_ = 0, passed_ = 0;
  std::optional<std::size_t> parent_;
  std::vector<std::size_t> children_;
  std::array<std::unique_ptr<Messages>, 2> received_, sent_;
};

/// Each rank adds its subtree's arrays; rank 0 has the sum of all.
class TreeSumExchange final : public Exchange {
 public:
  /// `sums`: room for `count` elements of partial_type(type), which may be `data` where the type is the same; `memory`
  /// for twice as many.
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
  std::size_t bytes_, asked_ = 0, added_ = 0;
  bool begun_ = false, sent_ = false;
  std::array<std::unique_ptr<Messages>, 2> received_;
  std::unique_ptr<Messages> sum_;
};

/// Parts along the tree over ranks, counted from a root: up to it (gather) or down from it (scatter). `parts` holds
/// those of the rank's subtree, its own one first.
class TreePartsExchange final : public Exchange {
 public:
  enum class Direction { up, down };
  TreePartsExchange(Transport& transport, std::size_t rank, std::size_t ranks, std::size_t root, Direction direction,
                    std::size_t part_bytes, std::byte* parts);
  Progress advance() override;

 private:
  void begin_children(Messages& messages);
  void begin_parent(Messages& messages);

  Transport& transport_;
  std::size_t ranks_, root_, number_;  ///< in the tree, whose root has number 0
  TreePosition position_;
  Direction direction_;
  std::size_t part_bytes_;
  std::byte* parts_;
  int stage_ = 0;
  std::unique_ptr<Messages> messages_;
};

}  // namespace mylos::parallel
