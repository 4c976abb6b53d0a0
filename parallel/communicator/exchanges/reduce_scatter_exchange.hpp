#pragma once

#include "parallel/communicator/exchanges/exchange_size.hpp"
#include "parallel/communicator/exchanges/parts.hpp"
#include "parallel/communicator/exchanges/transport.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace mylos::parallel {

/// The arrays of a reduce-scatter: each rank's part of `all`, summed over ranks, is written to its `mine`.
struct SumArrays {
  ElementType type;
  const std::byte* all;
  Parts parts;
  ElementType sum_type;
  std::byte* mine;
};

/// A set of parts that the ranks of one node handle together: the parts of local ranks chunk * n ... chunk * n + n - 1
/// of node `node`, one for each of the n ranks.
struct NodeJob {
  std::size_t node = 0, chunk = 0;
};

/// Where a rank is in an exchange between nodes and inside each. A unit is one piece exchanged with one block of nodes;
/// inside a node it takes a step for each job and block of local ranks.
struct ExchangeLevels {
  /// `map` must outlive it.
  ExchangeLevels(std::size_t own_rank, const NodeMap& map, const ExchangeSize& size);

  std::size_t piece_of(std::size_t unit) const { return unit / nodes.rounds(); }
  BlockOrder::Range met_in(std::size_t unit) const { return nodes.met_by(node, unit % nodes.rounds()); }
  BlockOrder::Range local_met_in(std::size_t step) const { return locals.met_by(local, step % locals.rounds()); }
  std::span<const std::size_t> locals_of_node() const { return map.ranks_of(node); }
  /// The rank of another node that this rank exchanges with.
  std::size_t partner_on(std::size_t other_node) const;
  std::vector<NodeJob> jobs(BlockOrder::Range of_nodes) const;
  /// Returns the rank whose part local rank `of_local` handles in a job; nullopt if the other node has fewer ranks.
  std::optional<std::size_t> handled_rank(const NodeJob& job, std::size_t of_local) const;

  std::size_t rank;
  const NodeMap& map;
  std::size_t node, local;
  BlockOrder nodes, locals;
};

/// Sums blocks of ranks' arrays as a balanced tree, in the order in which BlockOrder delivers them. Sums of complete
/// subtrees are held at their level until their neighbour is complete, like the digits of a binary counter.
class TreeAccumulator {
 public:
  /// Sums `rounds` blocks. `memory` must hold waiting_sums sums of `stride` bytes each.
  TreeAccumulator(Transport& transport, ElementType type, std::size_t rounds, std::byte* memory, std::size_t stride);

  /// The destination of the total sum.
  struct Result {
    ElementType type;
    void* sums;
  };
  /// Adds the arrays of the block of `round`, in the order of ranks; `parts` is empty if there is no such block. The
  /// last round writes `result`, which may alias one of its arrays.
  void add(std::size_t round, std::span<const void* const> parts, std::size_t count, const Result& result);

 private:
  Transport& transport_;
  ElementType type_, partial_;
  std::size_t rounds_;
  std::vector<std::byte*> sums_;  ///< by level
  std::vector<bool> is_there_;
};

/// A reduce-scatter in units (see ExchangeLevels). First the ranks of a node sum their data for the parts of the other
/// nodes of the unit, each rank handling some of the parts. Then the partial sums are sent to the ranks that own the
/// parts. Each node therefore sends each array about once. If each rank is on its own node, data is sent directly to
/// its rank.
class ReduceScatterExchange final : public Exchange {
 public:
  /// `map` must outlive the exchange.
  ReduceScatterExchange(Transport& transport, std::size_t rank, const NodeMap& map, std::size_t bucket,
                        const SumArrays& arrays);
  Progress advance() override;

 private:
  /// Elements of a rank's part in a piece. array_of() returns where they are in `all`.
  std::size_t size_of(std::size_t rank, std::size_t piece) const {
    return arrays_.parts.piece(rank, piece, piece_).size;
  }
  const std::byte* array_of(std::size_t rank, std::size_t piece) const;
  std::byte* partial(std::size_t unit, std::size_t job) const;
  /// Return where an array of local rank `other`, or of `node`, comes to.
  std::byte* from_node(std::size_t step, BlockOrder::Range met, std::size_t other) const;
  std::byte* received(std::size_t unit, BlockOrder::Range met, std::size_t node) const;

  void take_memory();
  bool sum_in_node();
  void begin_node_step(std::size_t step, Messages& messages);
  void end_node_step(std::size_t step);
  void begin_unit(std::size_t unit, Messages& messages);
  void finish_unit(std::size_t unit);

  Transport& transport_;
  SumArrays arrays_;
  bool has_levels_;
  ExchangeLevels levels_;
  ElementType unit_type_;  ///< element type of the data sent between nodes
  std::size_t element_;    ///< bytes of the widest element type held
  std::size_t piece_;      ///< in elements
  std::size_t units_ = 0, summed_ = 0;
  std::vector<NodeJob> jobs_;               ///< for the unit that is being summed in the node
  std::size_t most_jobs_ = 0, stride_ = 0;  ///< stride in bytes
  std::byte *from_node_ = nullptr, *partials_ = nullptr, *received_ = nullptr;
  Steps node_steps_, unit_steps_;
  std::optional<TreeAccumulator> node_sum_, sum_;
};

}  // namespace mylos::parallel
