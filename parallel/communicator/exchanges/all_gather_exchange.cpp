#include "parallel/communicator/exchanges/all_gather_exchange.hpp"

#include <algorithm>

namespace mylos::parallel {

AllGatherExchange::AllGatherExchange(Transport& transport, std::size_t rank, const NodeMap& map, std::size_t bucket,
                                     const Parts& bytes, const std::byte* mine, std::byte* all)
    : transport_(transport),
      bytes_(bytes),
      mine_(mine),
      all_(all),
      levels_(rank, map, exchange_size(map, bucket)),
      piece_(exchange_size(map, bucket).message_bytes),
      units_(bytes.pieces(piece_) * levels_.nodes.rounds()) {}

void AllGatherExchange::send(Messages& messages, std::size_t to, std::size_t part, std::size_t unit) const {
  const Parts::Piece piece = bytes_.piece(part, levels_.piece_of(unit), piece_);
  messages.send(to, all_ + piece.begin, piece.size);
}

void AllGatherExchange::receive(Messages& messages, std::size_t from, std::size_t part, std::size_t unit) const {
  const Parts::Piece piece = bytes_.piece(part, levels_.piece_of(unit), piece_);
  messages.receive(from, all_ + piece.begin, piece.size);
}

void AllGatherExchange::begin_unit(std::size_t unit, Messages& messages) {
  const BlockOrder::Range met = levels_.met_in(unit);
  if (met.contains(levels_.node)) {
    const std::size_t index = levels_.piece_of(unit);
    const Parts::Piece own = bytes_.piece(levels_.rank, index, piece_);
    const std::byte* const source = mine_ + index * piece_;
    if (own.size > 0 && source != all_ + own.begin) transport_.copy(all_ + own.begin, source, own.size);
  }
  for (const NodeJob& job : levels_.jobs(met)) {
    const auto theirs = levels_.handled_rank(job, levels_.local);
    if (job.node != levels_.node && theirs) receive(messages, *theirs, *theirs, unit);
  }
  for (std::size_t node = met.begin; node < met.end; ++node) {
    if (node != levels_.node) send(messages, levels_.partner_on(node), levels_.rank, unit);
  }
}

void AllGatherExchange::begin_node_step(std::size_t step, Messages& messages) {
  const NodeJob job = levels_.jobs(levels_.met_in(spread_))[step / levels_.locals.rounds()];
  const BlockOrder::Range met = levels_.local_met_in(step);
  const std::span<const std::size_t> ranks = levels_.locals_of_node();
  for (std::size_t other = met.begin; other < met.end; ++other) {
    const auto theirs = levels_.handled_rank(job, other);
    if (other != levels_.local && theirs) receive(messages, ranks[other], *theirs, spread_);
  }
  const auto mine = levels_.handled_rank(job, levels_.local);
  for (std::size_t other = met.begin; mine && other < met.end; ++other) {
    if (other != levels_.local) send(messages, ranks[other], *mine, spread_);
  }
}

/// Advances the distribution of the next arrived unit among this node's ranks. Returns true if it made progress.
bool AllGatherExchange::spread_in_node() {
  if (spread_ == unit_steps_.ended()) return false;
  const std::size_t steps = levels_.jobs(levels_.met_in(spread_)).size() * levels_.locals.rounds();
  const auto begin = [this](std::size_t step, Messages& messages) { begin_node_step(step, messages); };
  const bool moved = node_steps_.advance(transport_, steps, begin, [](std::size_t) {});
  if (node_steps_.ended() < steps) return moved;
  ++spread_;
  node_steps_.restart();
  return true;
}

Exchange::Progress AllGatherExchange::advance() {
  if (spread_ == units_) return Progress::done;
  const auto begin = [this](std::size_t unit, Messages& messages) { begin_unit(unit, messages); };
  const std::size_t ready = std::min(units_, spread_ + 2);
  const bool arrived = unit_steps_.advance(transport_, ready, begin, [](std::size_t) {});
  const bool has_levels = levels_.map.has_levels();
  if (!has_levels) spread_ = unit_steps_.ended();
  const bool moved = has_levels && spread_in_node();
  if (spread_ == units_) return Progress::done;
  return arrived || moved ? Progress::moved : Progress::waiting;
}

}  // namespace mylos::parallel
