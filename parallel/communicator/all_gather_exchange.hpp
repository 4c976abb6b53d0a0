#pragma once

#include "parallel/communicator/exchange_size.hpp"
#include "parallel/communicator/parts.hpp"
#include "parallel/communicator/transport.hpp"

#include <array>
#include <cstddef>
#include <memory>

namespace mylos::parallel {

/// An all-gather: each rank's part comes to `all` on all ranks. A rank's own part is copied from `mine` unless it is
/// already in `all`. Each part is sent once to every node, and is passed on among the ranks of the node.
class AllGatherExchange final : public Exchange {
 public:
  /// `bytes`: the parts, in bytes. `map` must outlive the exchange.
  AllGatherExchange(Transport& transport, std::size_t rank, const NodeMap& map, std::size_t bucket, const Parts& bytes,
                    const std::byte* mine, std::byte* all);
  Progress advance() override;

 private:
  BlockOrder::Range met_in(std::size_t unit) const { return nodes_.met_by(node_, unit % nodes_.rounds()); }
  Parts::Piece piece_of(std::size_t rank, std::size_t unit) const {
    return bytes_.piece(rank, unit / nodes_.rounds(), piece_);
  }
  void send(Messages& messages, std::size_t to, std::size_t part, std::size_t unit);
  void receive(Messages& messages, std::size_t from, std::size_t part, std::size_t unit);
  void begin_unit();
  bool spread_in_node();
  void begin_node_step(std::size_t step);

  Transport& transport_;
  std::size_t rank_;
  const NodeMap& map_;
  Parts bytes_;
  const std::byte* mine_;
  std::byte* all_;
  std::size_t node_, local_;
  BlockOrder nodes_, locals_;
  std::size_t piece_;  ///< in bytes
  std::size_t units_, begun_ = 0, arrived_ = 0, spread_ = 0;
  std::size_t node_steps_begun_ = 0, node_steps_ended_ = 0;
  std::array<std::unique_ptr<Messages>, 2> messages_, node_messages_;
};

}  // namespace mylos::parallel
