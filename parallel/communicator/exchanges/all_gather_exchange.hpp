#pragma once

#include "parallel/communicator/exchanges/parts.hpp"
#include "parallel/communicator/exchanges/reduce_scatter_exchange.hpp"
#include "parallel/communicator/exchanges/transport.hpp"

#include <cstddef>

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
  void send(Messages& messages, std::size_t to, std::size_t part, std::size_t unit) const;
  void receive(Messages& messages, std::size_t from, std::size_t part, std::size_t unit) const;
  void begin_unit(std::size_t unit, Messages& messages);
  bool spread_in_node();
  void begin_node_step(std::size_t step, Messages& messages);

  Transport& transport_;
  Parts bytes_;
  const std::byte* mine_;
  std::byte* all_;
  ExchangeLevels levels_;
  std::size_t piece_;  ///< in bytes
  std::size_t units_, spread_ = 0;
  Steps unit_steps_, node_steps_;
};

}  // namespace mylos::parallel
