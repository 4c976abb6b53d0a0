#include "parallel/communicator/all_gather_exchange.hpp"

#include "parallel/communicator/reduce_scatter_exchange.hpp"

#include <algorithm>

namespace mylos::parallel {

AllGatherExchange::AllGatherExchange(Transport& transport, std::size_t rank, const NodeMap& map, std::size_t bucket,
                                     const Parts& bytes, const std::byte* mine, std::byte* all)
    : transport_(transport),
      rank_(rank),
      map_(map),
      bytes_(bytes),
      mine_(mine),
      all_(all),
      node_(map.node_of(rank)),
      local_(map.local_of(rank)) {
  const ExchangeSize size = exchange_size(map, bucket);
  nodes_ = size.nodes;
  locals_ = {map.ranks_of(node_).size(), size.local_block};
  piece_ = size.message_bytes;
  units_ = bytes.pieces(piece_) * nodes_.rounds();
}

void AllGatherExchange::send(Messages& messages, std::size_t to, std::size_t part, std::size_t unit) {
  const Parts::Piece piece = piece_of(part, unit);
  messages.send(to, all_ + piece.begin, piece.size);
}

void AllGatherExchange::receive(Messages& messages, std::size_t from, std::size_t part, std::size_t unit) {
  const Parts::Piece piece = piece_of(part, unit);
  messages.receive(from, all_ + piece.begin, piece.size);
}

void AllGatherExchange::begin_unit() {
  const BlockOrder::Range met = met_in(begun_);
  if (met.contains(node_)) {
    const Parts::Piece own = piece_of(rank_, begun_);
    const std::byte* const source = mine_ + begun_ / nodes_.rounds() * piece_;
    if (own.size > 0 && source != all_ + own.begin) transport_.copy(all_ + own.begin, source, own.size);
  }
  Messages& messages = *messages_[begun_ % 2];
  for (const NodeJob& job : node_jobs(map_, node_, met)) {
    const auto theirs = handled_rank(map_, node_, job, local_);
    if (job.node != node_ && theirs) receive(messages, *theirs, *theirs, begun_);
  }
  for (std::size_t node = met.begin; node < met.end; ++node) {
    const std::span<const std::size_t> ranks = map_.ranks_of(node);
    if (node != node_) send(messages, ranks[local_ % ranks.size()], rank_, begun_);
  }
  ++begun_;
}

void AllGatherExchange::begin_node_step(std::size_t step) {
  const NodeJob job = node_jobs(map_, node_, met_in(spread_))[step / locals_.rounds()];
  const BlockOrder::Range met = locals_.met_by(local_, step % locals_.rounds());
  const std::span<const std::size_t> ranks = map_.ranks_of(node_);
  Messages& messages = *node_messages_[step % 2];
  for (std::size_t other = met.begin; other < met.end; ++other) {
    const auto theirs = handled_rank(map_, node_, job, other);
    if (other != local_ && theirs) receive(messages, ranks[other], *theirs, spread_);
  }
  const auto mine = handled_rank(map_, node_, job, local_);
  for (std::size_t other = met.begin; mine && other < met.end; ++other) {
    if (other != local_) send(messages, ranks[other], *mine, spread_);
  }
}

/// Advances the distribution of the next arrived unit among this node's ranks. Returns true if it made progress.
bool AllGatherExchange::spread_in_node() {
  if (spread_ == arrived_) return false;
  const std::size_t steps = node_jobs(map_, node_, met_in(spread_)).size() * locals_.rounds();
  bool moved = false;
  for (; node_steps_begun_ < std::min(steps, node_steps_ended_ + 2); moved = true) begin_node_step(node_steps_begun_++);
  if (node_steps_ended_ < steps) {
    if (!node_messages_[node_steps_ended_ % 2]->done()) return moved;
    ++node_steps_ended_;
  }
  if (node_steps_ended_ == steps) {
    ++spread_;
    node_steps_begun_ = node_steps_ended_ = 0;
  }
  return true;
}

Exchange::Progress AllGatherExchange::advance() {
  if (spread_ == units_) return Progress::done;
  if (messages_[0] == nullptr) {
    for (std::unique_ptr<Messages>& each : messages_) each = transport_.make_messages();
    for (std::unique_ptr<Messages>& each : node_messages_) each = transport_.make_messages();
  }
  bool moved = false;
  for (; begun_ < std::min(units_, spread_ + 2); moved = true) begin_unit();
  if (arrived_ < begun_ && messages_[arrived_ % 2]->done()) {
    ++arrived_;
    moved = true;
  }
  if (!map_.has_levels()) {
    spread_ = arrived_;
  } else {
    moved = spread_in_node() || moved;
  }
  if (spread_ == units_) return Progress::done;
  return moved ? Progress::moved : Progress::waiting;
}

}  // namespace mylos::parallel
