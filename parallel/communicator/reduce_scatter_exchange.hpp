#pragma once

#include "parallel/communicator/exchange_size.hpp"
#include "parallel/communicator/parts.hpp"
#include "parallel/communicator/transport.hpp"
#include "parallel/communicator/tree_accumulator.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
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
std::vector<NodeJob> node_jobs(const NodeMap& map, std::size_t mine, BlockOrder::Range nodes);
/// Returns the rank whose part local rank `local` of node `mine` handles in a job; nullopt if the other node has fewer
/// ranks.
std::optional<std::size_t> handled_rank(const NodeMap& map, std::size_t mine, const NodeJob& job, std::size_t local);

/// A reduce-scatter in pieces and units: a unit is one piece exchanged with one block of nodes. First the ranks of a
/// node sum their data for the parts of those nodes, each rank handling some of the parts. Then the partial sums are
/// sent to the ranks that own the parts. Each node therefore sends each array about once. If each rank is on its own
/// node, data is sent directly to its rank.
class ReduceScatterExchange final : public Exchange {
 public:
  /// `map` must outlive the exchange.
  ReduceScatterExchange(Transport& transport, std::size_t rank, const NodeMap& map, std::size_t bucket,
                        const SumArrays& arrays);
  Progress advance() override;

 private:
  std::size_t piece_of(std::size_t unit) const { return unit / nodes_.rounds(); }
  BlockOrder::Range met_in(std::size_t unit) const { return nodes_.met_by(node_, unit % nodes_.rounds()); }
  /// Elements of a rank's part in a piece. array_of() returns where they are in `all`.
  std::size_t size_of(std::size_t rank, std::size_t piece) const {
    return arrays_.parts.piece(rank, piece, piece_).size;
  }
  const std::byte* array_of(std::size_t rank, std::size_t piece) const;
  std::byte* partial(std::size_t unit, std::size_t job) const;

  void take_memory();
  bool sum_in_node();
  void begin_node_step(std::size_t step);
  void end_node_step(std::size_t step);
  void begin_unit();
  void finish_unit();

  Transport& transport_;
  std::size_t rank_;
  const NodeMap& map_;
  SumArrays arrays_;
  bool has_levels_;
  std::size_t node_, local_;
  BlockOrder nodes_, locals_;
  ElementType unit_type_;  ///< element type of the data sent between nodes
  std::size_t element_;    ///< bytes of the widest element type held
  std::size_t piece_;      ///< in elements
  std::size_t units_, summed_ = 0, begun_ = 0, finished_ = 0;
  std::vector<NodeJob> jobs_;  ///< for the unit that is being summed in the node
  std::size_t node_steps_begun_ = 0, node_steps_ended_ = 0;
  std::size_t most_jobs_ = 0, stride_ = 0;  ///< stride in bytes
  std::byte *from_node_ = nullptr, *partials_ = nullptr, *received_ = nullptr;
  std::array<std::unique_ptr<Messages>, 2> node_messages_, messages_;
  std::optional<TreeAccumulator> node_sum_, sum_;
};

}  // namespace mylos::parallel
