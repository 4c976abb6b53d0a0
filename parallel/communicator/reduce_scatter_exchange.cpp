#include "parallel/communicator/reduce_scatter_exchange.hpp"

#include <algorithm>

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

std::vector<NodeJob> node_jobs(const NodeMap& map, std::size_t mine, BlockOrder::Range nodes) {
  const std::size_t helpers = map.ranks_of(mine).size();
  std::vector<NodeJob> jobs;
  for (std::size_t node = nodes.begin; node < nodes.end; ++node) {
    const std::size_t chunks = (map.ranks_of(node).size() + helpers - 1) / helpers;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) jobs.push_back({node, chunk});
  }
  return jobs;
}

std::optional<std::size_t> handled_rank(const NodeMap& map, std::size_t mine, const NodeJob& job, std::size_t local) {
  const std::span<const std::size_t> ranks = map.ranks_of(job.node);
  const std::size_t position = job.chunk * map.ranks_of(mine).size() + local;
  return position < ranks.size() ? std::optional(ranks[position]) : std::nullopt;
}

ReduceScatterExchange::ReduceScatterExchange(Transport& transport, std::size_t rank, const NodeMap& map,
                                             std::size_t bucket, const SumArrays& arrays)
    : transport_(transport),
      rank_(rank),
      map_(map),
      arrays_(arrays),
      has_levels_(map.has_levels()),
      node_(map.node_of(rank)),
      local_(map.local_of(rank)) {
  const ExchangeSize size = exchange_size(map, bucket);
  nodes_ = size.nodes;
  locals_ = {map.ranks_of(node_).size(), size.local_block};
  unit_type_ = has_levels_ ? partial_type(arrays.type) : arrays.type;
  const bool widens = has_levels_ || waiting_sums(nodes_) > 0;
  element_ = bytes_of(widens ? partial_type(arrays.type) : arrays.type);
  piece_ = std::min(size.message_bytes / element_, std::max<std::size_t>(arrays.parts.part, 1));
  units_ = arrays.parts.pieces(piece_) * nodes_.rounds();
  for (std::size_t round = 0; has_levels_ && round < nodes_.rounds(); ++round) {
    most_jobs_ = std::max(most_jobs_, node_jobs(map, node_, nodes_.met_by(node_, round)).size());
  }
}

const std::byte* ReduceScatterExchange::array_of(std::size_t rank, std::size_t piece) const {
  return arrays_.all + arrays_.parts.piece(rank, piece, piece_).begin * bytes_of(arrays_.type);
}

std::byte* ReduceScatterExchange::partial(std::size_t unit, std::size_t job) const {
  return partials_ + (unit % 2 * most_jobs_ + job) * stride_;
}

void ReduceScatterExchange::take_memory() {
  constexpr std::size_t alignment = 64;
  stride_ = (piece_ * element_ + alignment - 1) / alignment * alignment;
  const std::size_t from_node = has_levels_ ? 2 * received_at_a_time(locals_) : 0;
  const std::size_t node_sums = has_levels_ ? waiting_sums(locals_) : 0;
  const std::size_t received = 2 * received_at_a_time(nodes_);
  std::byte* at =
      transport_.reserve((from_node + node_sums + 2 * most_jobs_ + received + waiting_sums(nodes_)) * stride_);
  const auto take = [&](std::size_t messages) {
    std::byte* const taken = at;
    at += messages * stride_;
    return taken;
  };
  from_node_ = take(from_node);
  node_sum_.emplace(transport_, arrays_.type, locals_.rounds(), take(node_sums), stride_);
  partials_ = take(2 * most_jobs_);
  received_ = take(received);
  sum_.emplace(transport_, unit_type_, nodes_.rounds(), take(waiting_sums(nodes_)), stride_);
  for (std::unique_ptr<Messages>& each : node_messages_) each = transport_.make_messages();
  for (std::unique_ptr<Messages>& each : messages_) each = transport_.make_messages();
}

/// Exchanges the data for one job among the ranks of this node.
void ReduceScatterExchange::begin_node_step(std::size_t step) {
  const NodeJob& job = jobs_[step / locals_.rounds()];
  const BlockOrder::Range met = locals_.met_by(local_, step % locals_.rounds());
  const std::span<const std::size_t> ranks = map_.ranks_of(node_);
  const std::size_t piece = piece_of(summed_), element = bytes_of(arrays_.type);
  Messages& messages = *node_messages_[step % 2];
  const auto mine = handled_rank(map_, node_, job, local_);
  for (std::size_t other = met.begin; mine && other < met.end; ++other) {
    if (other == local_) continue;
    const std::size_t position = received_position(locals_, met, other, local_);
    std::byte* const memory = from_node_ + (step % 2 * received_at_a_time(locals_) + position) * stride_;
    messages.receive(ranks[other], memory, size_of(*mine, piece) * element);
  }
  for (std::size_t other = met.begin; other < met.end; ++other) {
    const auto theirs = handled_rank(map_, node_, job, other);
    if (other == local_ || !theirs) continue;
    messages.send(ranks[other], array_of(*theirs, piece), size_of(*theirs, piece) * element);
  }
}

void ReduceScatterExchange::end_node_step(std::size_t step) {
  const std::size_t job = step / locals_.rounds(), round = step % locals_.rounds(), piece = piece_of(summed_);
  const auto mine = handled_rank(map_, node_, jobs_[job], local_);
  if (!mine) return;
  const BlockOrder::Range met = locals_.met_by(local_, round);
  std::vector<const void*> parts;
  for (std::size_t other = met.begin; other < met.end; ++other) {
    const std::size_t position = other == local_ ? 0 : received_position(locals_, met, other, local_);
    const std::byte* const received = from_node_ + (step % 2 * received_at_a_time(locals_) + position) * stride_;
    parts.push_back(other == local_ ? array_of(*mine, piece) : received);
  }
  node_sum_->add(round, parts, size_of(*mine, piece), {unit_type_, partial(summed_, job)});
}

/// Advances the sums within the node for the next unit. Returns true if it made progress.
bool ReduceScatterExchange::sum_in_node() {
  if (summed_ == units_ || summed_ == finished_ + 2) return false;
  if (node_steps_begun_ == 0) jobs_ = node_jobs(map_, node_, met_in(summed_));
  const std::size_t steps = jobs_.size() * locals_.rounds();
  bool moved = false;
  for (; node_steps_begun_ < std::min(steps, node_steps_ended_ + 2); moved = true) begin_node_step(node_steps_begun_++);
  if (node_steps_ended_ < steps) {
    if (!node_messages_[node_steps_ended_ % 2]->done()) return moved;
    end_node_step(node_steps_ended_++);
  }
  if (node_steps_ended_ == steps) {
    ++summed_;
    node_steps_begun_ = node_steps_ended_ = 0;
  }
  return true;
}

void ReduceScatterExchange::begin_unit() {
  const BlockOrder::Range met = met_in(begun_);
  const std::size_t piece = piece_of(begun_), element = bytes_of(unit_type_);
  Messages& messages = *messages_[begun_ % 2];
  for (std::size_t node = met.begin; node < met.end; ++node) {
    if (node == node_) continue;
    const std::span<const std::size_t> ranks = map_.ranks_of(node);
    const std::size_t position = received_position(nodes_, met, node, node_);
    std::byte* const memory = received_ + (begun_ % 2 * received_at_a_time(nodes_) + position) * stride_;
    messages.receive(ranks[local_ % ranks.size()], memory, size_of(rank_, piece) * element);
  }
  const std::vector<NodeJob> jobs = node_jobs(map_, node_, met);
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    const auto theirs = handled_rank(map_, node_, jobs[job], local_);
    if (jobs[job].node == node_ || !theirs) continue;
    const std::byte* const values = has_levels_ ? partial(begun_, job) : array_of(*theirs, piece);
    messages.send(*theirs, values, size_of(*theirs, piece) * element);
  }
  ++begun_;
}

void ReduceScatterExchange::finish_unit() {
  const BlockOrder::Range met = met_in(finished_);
  const std::size_t piece = piece_of(finished_);
  std::vector<const void*> parts;
  for (std::size_t node = met.begin; node < met.end; ++node) {
    if (node == node_) {
      // Skip the jobs of earlier nodes in this block.
      const std::size_t job = has_levels_ ? node_jobs(map_, node_, {met.begin, node_}).size() : 0;
      parts.push_back(has_levels_ ? partial(finished_, job) : array_of(rank_, piece));
    } else {
      const std::size_t position = received_position(nodes_, met, node, node_);
      parts.push_back(received_ + (finished_ % 2 * received_at_a_time(nodes_) + position) * stride_);
    }
  }
  std::byte* const sums = arrays_.mine + piece * piece_ * bytes_of(arrays_.sum_type);
  sum_->add(finished_ % nodes_.rounds(), parts, size_of(rank_, piece), {arrays_.sum_type, sums});
  ++finished_;
}

Exchange::Progress ReduceScatterExchange::advance() {
  if (finished_ == units_) return Progress::done;
  if (!sum_) take_memory();
  bool moved = has_levels_ && sum_in_node();
  const std::size_t ready = has_levels_ ? summed_ : std::min(units_, finished_ + 2);
  for (; begun_ < ready; moved = true) begin_unit();
  if (finished_ < begun_ && messages_[finished_ % 2]->done()) {
    finish_unit();
    moved = true;
  }
  if (finished_ == units_) return Progress::done;
  return moved ? Progress::moved : Progress::waiting;
}

}  // namespace mylos::parallel
