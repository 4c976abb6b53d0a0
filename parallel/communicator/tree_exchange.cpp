#include "parallel/communicator/tree_exchange.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace mylos::parallel {
namespace {

/// Converts between a member and its position in a tree with root `root`.
std::size_t member_at(std::size_t position, std::size_t root, std::size_t members) {
  return (position + root) % members;
}
std::size_t position_of(std::size_t member, std::size_t root, std::size_t members) {
  return (member + members - root) % members;
}

}  // namespace

TreePosition tree_position(std::size_t rank, std::size_t ranks) {
  const std::size_t reach = rank == 0 ? std::bit_ceil(ranks) : rank & (~rank + 1);
  TreePosition position;
  if (rank != 0) position.parent = rank - reach;
  for (std::size_t step = 1; step < reach && rank + step < ranks; step *= 2) position.children.push_back(rank + step);
  position.end = std::min(ranks, rank + reach);
  return position;
}

BroadcastExchange::BroadcastExchange(Transport& transport, std::size_t rank, const NodeMap& map, std::size_t bucket,
                                     std::size_t root, std::size_t bytes, std::byte* data)
    : transport_(transport),
      bytes_(bytes),
      data_(data),
      piece_(exchange_size(map, bucket).message_bytes),
      pieces_((bytes + piece_ - 1) / piece_) {
  const std::size_t nodes = map.nodes(), node = map.node_of(rank), root_node = map.node_of(root);
  // The rank through which data enters a node.
  const auto gate = [&](std::size_t of) { return of == root_node ? root : map.ranks_of(of).front(); };
  const auto add = [&](const TreePosition& position, const auto& rank_at) {
    if (position.parent) parent_ = rank_at(*position.parent);
    for (auto child = position.children.rbegin(); child != position.children.rend(); ++child) {
      children_.push_back(rank_at(*child));
    }
  };
  if (rank == gate(node)) {
    add(tree_position(position_of(node, root_node, nodes), nodes),
        [&](std::size_t position) { return gate(member_at(position, root_node, nodes)); });
  }
  const std::span<const std::size_t> ranks = map.ranks_of(node);
  const std::size_t first = map.local_of(gate(node));
  add(tree_position(position_of(map.local_of(rank), first, ranks.size()), ranks.size()),
      [&](std::size_t position) { return ranks[member_at(position, first, ranks.size())]; });
}

Exchange::Progress BroadcastExchange::advance() {
  if (passed_ == pieces_) return Progress::done;
  if (received_[0] == nullptr) {
    for (std::unique_ptr<Messages>& each : received_) each = transport_.make_messages();
    for (std::unique_ptr<Messages>& each : sent_) each = transport_.make_messages();
  }
  bool moved = false;
  for (; asked_ < std::min(pieces_, passed_ + 2); ++asked_, moved = true) {
    if (parent_) received_[asked_ % 2]->receive(*parent_, data_ + asked_ * piece_, size_of(asked_));
  }
  if (arrived_ < asked_ && received_[arrived_ % 2]->done()) {
    for (const std::size_t child : children_) {
      sent_[arrived_ % 2]->send(child, data_ + arrived_ * piece_, size_of(arrived_));
    }
    ++arrived_;
    moved = true;
  }
  if (passed_ < arrived_ && sent_[passed_ % 2]->done()) {
    ++passed_;
    moved = true;
  }
  if (passed_ == pieces_) return Progress::done;
  return moved ? Progress::moved : Progress::waiting;
}

TreeSumExchange::TreeSumExchange(Transport& transport, std::size_t rank, std::size_t ranks, const Arrays& arrays)
    : transport_(transport),
      position_(tree_position(rank, ranks)),
      arrays_(arrays),
      bytes_(arrays.count * bytes_of(partial_type(arrays.type))) {
  for (std::unique_ptr<Messages>& each : received_) each = transport.make_messages();
  sum_ = transport.make_messages();
}

Exchange::Progress TreeSumExchange::advance() {
  const ElementType partial = partial_type(arrays_.type);
  if (!std::exchange(begun_, true) && arrays_.sums != arrays_.data) {
    const std::array<const void*, 1> own{arrays_.data};
    transport_.sum(arrays_.type, own, arrays_.count, partial, arrays_.sums);
  }
  const std::size_t children = position_.children.size();
  for (; asked_ < std::min(children, added_ + 2); ++asked_) {
    received_[asked_ % 2]->receive(position_.children[asked_], arrays_.memory + asked_ % 2 * bytes_, bytes_);
  }
  if (added_ < children) {
    if (!received_[added_ % 2]->done()) return Progress::waiting;
    const std::array<const void*, 2> both{arrays_.sums, arrays_.memory + added_ % 2 * bytes_};
    transport_.sum(partial, both, arrays_.count, partial, arrays_.sums);
    ++added_;
    if (added_ < children) return Progress::moved;
  }
  if (!position_.parent) return Progress::done;
  if (!sent_) sum_->send(*position_.parent, arrays_.sums, bytes_);
  sent_ = true;
  return sum_->done() ? Progress::done : Progress::waiting;
}

TreePartsExchange::TreePartsExchange(Transport& transport, std::size_t rank, std::size_t ranks, std::size_t root,
                                     Direction direction, const Parts& bytes, std::byte* array)
    : transport_(transport),
      ranks_(ranks),
      root_(root),
      number_(position_of(rank, root, ranks)),
      position_(tree_position(number_, ranks)),
      direction_(direction),
      bytes_(bytes),
      array_(array),
      messages_(transport.make_messages()) {}

std::size_t TreePartsExchange::size_of(std::size_t first, std::size_t end) const {
  return std::min(bytes_.count, end * bytes_.part) - std::min(bytes_.count, first * bytes_.part);
}

void TreePartsExchange::begin_children(Messages& messages) {
  for (const std::size_t child : position_.children) {
    const std::size_t rank = member_at(child, root_, ranks_);
    std::byte* const data = array_ + (child - number_) * bytes_.part;
    const std::size_t bytes = size_of(child, tree_position(child, ranks_).end);
    if (direction_ == Direction::up) {
      messages.receive(rank, data, bytes);
    } else {
      messages.send(rank, data, bytes);
    }
  }
}

void TreePartsExchange::begin_parent(Messages& messages) {
  if (!position_.parent) return;
  const std::size_t rank = member_at(*position_.parent, root_, ranks_), bytes = size_of(number_, position_.end);
  if (direction_ == Direction::up) {
    messages.send(rank, array_, bytes);
  } else {
    messages.receive(rank, array_, bytes);
  }
}

Exchange::Progress TreePartsExchange::advance() {
  const bool is_up = direction_ == Direction::up;
  for (; stage_ < 3; ++stage_) {
    if (stage_ > 0 && !messages_->done()) return Progress::waiting;
    if (stage_ == 2) continue;
    if ((stage_ == 0) == is_up) {
      begin_children(*messages_);
    } else {
      begin_parent(*messages_);
    }
  }
  return Progress::done;
}

}  // namespace mylos::parallel
