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

/// Each rank's part of `mine` becomes the sum over ranks of that part of `all`.
struct SumArrays {
  ElementType type;
  const std::byte* all;
  Parts parts;
  ElementType sum_type;
  std::byte* mine;
};

/// Parts of a block of nodes that the ranks of one node handle together: of node `node`, those of its local ranks
/// chunk * n ... chunk * n + n - 1, one for each of the n ranks.
struct NodeJob {
  std::size_t node = 0, chunk = 0;
};
std::vector<NodeJob> node_jobs(const NodeMap& map, std::size_t mine, BlockOrder::Range nodes);
/// The rank whose part local rank `local` of node `mine` handles in a job; none where the other node has fewer.
std::optional<std::size_t> handled_rank(const NodeMap& map, std::size_t mine, const NodeJob& job, std::size_t local);

/// In pieces, each in units: a unit is what a rank exchanges with one block of nodes. The ranks of a node first sum
/// what they have for the parts of those nodes, each rank for its share of them; then partial sums go from node to
/// node, to the ranks whose parts they are. So each node sends each array about once. Where each rank is on a node of
/// its own, arrays go to their ranks at once.
class ReduceScatterExchange final : public Exchange {
 public:
  /// `map` outlives it.
  ReduceScatterExchange(Transport& transport, std::size_t rank, const NodeMap& map, std::size_t bucket,
                        const SumArrays& arrays);
  Progress advance() override;

 private:
  std::size_t piece_of(std::size_t unit) const { return unit / nodes_.rounds(); }
  BlockOrder::Range met_in(std::size_t unit) const { return nodes_.met_by(node_, unit % nodes_.rounds()); }
  /// Elements of a rank's part in a piece, and where they are in `all`.
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
  ElementType unit_type_;  ///< of what goes from node to node
  std::size_t element_;    ///< bytes of the widest that is held
  std::size_t piece_;      ///< elements
  std::size_t units_, summed_ = 0, begun_ = 0, finished_ = 0;
  std::vector<NodeJob> jobs_;  ///< of the unit that is summed in the node
  std::size_t node_steps_begun_ = 0, node_steps_ended_ = 0;
  std::size_t most_jobs_ = 0, stride_ = 0;  ///< bytes
  std::byte *from_node_ = nullptr, *partials_ = nullptr, *received_ = nullptr;
  std::array<std::unique_ptr<Messages>, 2> node_messages_, messages_;
  std::optional<TreeAccumulator> node_sum_, sum_;
};

}  // namespace mylos::parallel
