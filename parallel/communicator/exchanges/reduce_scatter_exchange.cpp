#include "parallel/communicator/exchanges/reduce_scatter_exchange.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace mylos::parallel {
namespace {

/// Returns the index of a member's array among those received from a block. This rank's own array is not received.
std::size_t received_position(const BlockOrder& order, BlockOrder::Range block, std::size_t member, std::size_t own) {
  const std::size_t position = member - block.begin;
  return order.blocks() == 1 && member > own ? position - 1 : position;
}

std::size_t received_at_a_time(const BlockOrder& order) {
  return order.blocks() == 1 ? order.members - 1 : order.block;
}

}  // namespace

TreeAccumulator::TreeAccumulator(Transport& transport, ElementType type, std::size_t rounds, std::byte* memory,
                                 std::size_t stride)
    : transport_(transport), type_(type), partial_(partial_type(type)), rounds_(rounds) {
  if (rounds == 1) return;
  for (std::size_t level = 0; level < static_cast<std::size_t>(std::bit_width(rounds)); ++level) {
    sums_.push_back(memory + level * stride);
  }
  is_there_.resize(sums_.size());
}

void TreeAccumulator::add(std::size_t round, std::span<const void* const> parts, std::size_t count,
                          const Result& result) {
  if (rounds_ == 1) return transport_.sum(type_, parts, count, result.type, result.sums);
  const auto level = static_cast<std::size_t>(std::countr_one(round));
  bool there = !parts.empty();
  if (there) transport_.sum(type_, parts, count, partial_, sums_[level]);
  for (std::size_t below = 0; below < level; ++below) {
    if (!is_there_[below]) continue;
    is_there_[below] = false;
    if (there) {
      const std::array<const void*, 2> both{sums_[below], sums_[level]};
      transport_.sum(partial_, both, count, partial_, sums_[level]);
    } else {
      std::swap(sums_[below], sums_[level]);
      there = true;
    }
  }
  is_there_[level] = there;
  if (round + 1 < rounds_) return;
  is_there_[level] = false;
  const std::array<const void*, 1> all{sums_[level]};
  transport_.sum(partial_, all, count, result.type, result.sums);
}

ExchangeLevels::ExchangeLevels(std::size_t own_rank, const NodeMap& node_map, const ExchangeSize& size)
    : rank(own_rank),
      map(node_map),
      node(map.node_of(rank)),
      local(map.local_of(rank)),
      nodes(size.nodes),
      locals{map.ranks_of(node).size(), size.local_block} {}

std::size_t ExchangeLevels::partner_on(std::size_t other_node) const {
  const std::span<const std::size_t> ranks = map.ranks_of(other_node);
  return ranks[local % ranks.size()];
}

std::vector<NodeJob> ExchangeLevels::jobs(BlockOrder::Range of_nodes) const {
  std::vector<NodeJob> jobs;
  for (std::size_t other = of_nodes.begin; other < of_nodes.end; ++other) {
    const std::size_t chunks = (map.ranks_of(other).size() + locals.members - 1) / locals.members;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) jobs.push_back({other, chunk});
  }
  return jobs;
}

std::optional<std::size_t> ExchangeLevels::handled_rank(const NodeJob& job, std::size_t of_local) const {
  const std::span<const std::size_t> ranks = map.ranks_of(job.node);
  const std::size_t position = job.chunk * locals.members + of_local;
  return position < ranks.size() ? std::optional(ranks[position]) : std::nullopt;
}

ReduceScatterExchange::ReduceScatterExchange(Transport& transport, std::size_t rank, const NodeMap& map,
                                             std::size_t bucket, const SumArrays& arrays)
    : transport_(transport),
      arrays_(arrays),
      has_levels_(map.has_levels()),
      levels_(rank, map, exchange_size(map, bucket)),
      unit_type_(has_levels_ ? partial_type(arrays.type) : arrays.type) {
  const std::size_t rounds = levels_.nodes.rounds();
  const bool widens = has_levels_ || waiting_sums(levels_.nodes) > 0;
  element_ = bytes_of(widens ? partial_type(arrays.type) : arrays.type);
  piece_ = std::min(exchange_size(map, bucket).message_bytes / element_, std::max<std::size_t>(arrays.parts.part, 1));
  units_ = arrays.parts.pieces(piece_) * rounds;
  for (std::size_t round = 0; has_levels_ && round < rounds; ++round) {
    most_jobs_ = std::max(most_jobs_, levels_.jobs(levels_.met_in(round)).size());
  }
}

const std::byte* ReduceScatterExchange::array_of(std::size_t rank, std::size_t piece) const {
  return arrays_.all + arrays_.parts.piece(rank, piece, piece_).begin * bytes_of(arrays_.type);
}

std::byte* ReduceScatterExchange::from_node(std::size_t step, BlockOrder::Range met, std::size_t other) const {
  const std::size_t position = received_position(levels_.locals, met, other, levels_.local);
  return from_node_ + (step % 2 * received_at_a_time(levels_.locals) + position) * stride_;
}

std::byte* ReduceScatterExchange::received(std::size_t unit, BlockOrder::Range met, std::size_t node) const {
  const std::size_t position = received_position(levels_.nodes, met, node, levels_.node);
  return received_ + (unit % 2 * received_at_a_time(levels_.nodes) + position) * stride_;
}

std::byte* ReduceScatterExchange::partial(std::size_t unit, std::size_t job) const {
  return partials_ + (unit % 2 * most_jobs_ + job) * stride_;
}

void ReduceScatterExchange::take_memory() {
  constexpr std::size_t alignment = 64;
  stride_ = (piece_ * element_ + alignment - 1) / alignment * alignment;
  const std::size_t from_node = has_levels_ ? 2 * received_at_a_time(levels_.locals) : 0;
  const std::size_t node_sums = has_levels_ ? waiting_sums(levels_.locals) : 0;
  const std::size_t received = 2 * received_at_a_time(levels_.nodes);
  std::byte* at =
      transport_.reserve((from_node + node_sums + 2 * most_jobs_ + received + waiting_sums(levels_.nodes)) * stride_);
  const auto take = [&](std::size_t messages) {
    std::byte* const taken = at;
    at += messages * stride_;
    return taken;
  };
  from_node_ = take(from_node);
  node_sum_.emplace(transport_, arrays_.type, levels_.locals.rounds(), take(node_sums), stride_);
  partials_ = take(2 * most_jobs_);
  received_ = take(received);
  sum_.emplace(transport_, unit_type_, levels_.nodes.rounds(), take(waiting_sums(levels_.nodes)), stride_);
}

/// Exchanges the data for one job among the ranks of this node.
void ReduceScatterExchange::begin_node_step(std::size_t step, Messages& messages) {
  const NodeJob& job = jobs_[step / levels_.locals.rounds()];
  const BlockOrder::Range met = levels_.local_met_in(step);
  const std::span<const std::size_t> ranks = levels_.locals_of_node();
  const std::size_t piece = levels_.piece_of(summed_), element = bytes_of(arrays_.type);
  const auto mine = levels_.handled_rank(job, levels_.local);
  for (std::size_t other = met.begin; mine && other < met.end; ++other) {
    if (other == levels_.local) continue;
    messages.receive(ranks[other], from_node(step, met, other), size_of(*mine, piece) * element);
  }
  for (std::size_t other = met.begin; other < met.end; ++other) {
    const auto theirs = levels_.handled_rank(job, other);
    if (other == levels_.local || !theirs) continue;
    messages.send(ranks[other], array_of(*theirs, piece), size_of(*theirs, piece) * element);
  }
}

void ReduceScatterExchange::end_node_step(std::size_t step) {
  const std::size_t rounds = levels_.locals.rounds(), job = step / rounds, piece = levels_.piece_of(summed_);
  const auto mine = levels_.handled_rank(jobs_[job], levels_.local);
  if (!mine) return;
  const BlockOrder::Range met = levels_.local_met_in(step);
  std::vector<const void*> parts;
  for (std::size_t other = met.begin; other < met.end; ++other) {
    parts.push_back(other == levels_.local ? array_of(*mine, piece) : from_node(step, met, other));
  }
  node_sum_->add(step % rounds, parts, size_of(*mine, piece), {unit_type_, partial(summed_, job)});
}

/// Advances the sums within the node for the next unit. Returns true if it made progress.
bool ReduceScatterExchange::sum_in_node() {
  if (summed_ == units_ || summed_ == unit_steps_.ended() + 2) return false;
  if (node_steps_.begun() == 0) jobs_ = levels_.jobs(levels_.met_in(summed_));
  const std::size_t steps = jobs_.size() * levels_.locals.rounds();
  const auto begin = [this](std::size_t step, Messages& messages) { begin_node_step(step, messages); };
  const bool moved = node_steps_.advance(transport_, steps, begin, [this](std::size_t step) { end_node_step(step); });
  if (node_steps_.ended() < steps) return moved;
  ++summed_;
  node_steps_.restart();
  return true;
}

void ReduceScatterExchange::begin_unit(std::size_t unit, Messages& messages) {
  const BlockOrder::Range met = levels_.met_in(unit);
  const std::size_t piece = levels_.piece_of(unit), element = bytes_of(unit_type_);
  for (std::size_t node = met.begin; node < met.end; ++node) {
    if (node == levels_.node) continue;
    messages.receive(levels_.partner_on(node), received(unit, met, node), size_of(levels_.rank, piece) * element);
  }
  const std::vector<NodeJob> jobs = levels_.jobs(met);
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    const auto theirs = levels_.handled_rank(jobs[job], levels_.local);
    if (jobs[job].node == levels_.node || !theirs) continue;
    const std::byte* const values = has_levels_ ? partial(unit, job) : array_of(*theirs, piece);
    messages.send(*theirs, values, size_of(*theirs, piece) * element);
  }
}

void ReduceScatterExchange::finish_unit(std::size_t unit) {
  const BlockOrder::Range met = levels_.met_in(unit);
  const std::size_t piece = levels_.piece_of(unit), rank = levels_.rank;
  std::vector<const void*> parts;
  for (std::size_t node = met.begin; node < met.end; ++node) {
    if (node == levels_.node) {
      // Skip the jobs of earlier nodes in this block.
      const std::size_t job = has_levels_ ? levels_.jobs({met.begin, node}).size() : 0;
      parts.push_back(has_levels_ ? partial(unit, job) : array_of(rank, piece));
    } else {
      parts.push_back(received(unit, met, node));
    }
  }
  std::byte* const sums = arrays_.mine + piece * piece_ * bytes_of(arrays_.sum_type);
  sum_->add(unit % levels_.nodes.rounds(), parts, size_of(rank, piece), {arrays_.sum_type, sums});
}

Exchange::Progress ReduceScatterExchange::advance() {
  if (unit_steps_.ended() == units_) return Progress::done;
  if (!sum_) take_memory();
  const bool summed = has_levels_ && sum_in_node();
  const auto begin = [this](std::size_t unit, Messages& messages) { begin_unit(unit, messages); };
  const auto end = [this](std::size_t unit) { finish_unit(unit); };
  const bool moved = unit_steps_.advance(transport_, has_levels_ ? summed_ : units_, begin, end);
  if (unit_steps_.ended() == units_) return Progress::done;
  return summed || moved ? Progress::moved : Progress::waiting;
}

}  // namespace mylos::parallel
