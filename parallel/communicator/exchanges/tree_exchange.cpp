#include "parallel/communicator/exchanges/tree_exchange.hpp"

#include <algorithm>
#include <array>
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
  if (passed_on_.ended() == pieces_) return Progress::done;
  const auto nothing = [](std::size_t) {};
  const auto receive = [&](std::size_t piece, Messages& messages) {
    if (parent_) messages.receive(*parent_, data_ + piece * piece_, size_of(piece));
  };
  const auto pass_on = [&](std::size_t piece, Messages& messages) {
    for (const std::size_t child : children_) messages.send(child, data_ + piece * piece_, size_of(piece));
  };
  const bool arrived = arriving_.advance(transport_, std::min(pieces_, passed_on_.ended() + 2), receive, nothing);
  const bool passed = passed_on_.advance(transport_, arriving_.ended(), pass_on, nothing);
  if (passed_on_.ended() == pieces_) return Progress::done;
  return arrived || passed ? Progress::moved : Progress::waiting;
}

TreeSumExchange::TreeSumExchange(Transport& transport, std::size_t rank, std::size_t ranks, const Arrays& arrays)
    : transport_(transport),
      position_(tree_position(rank, ranks)),
      arrays_(arrays),
      bytes_(arrays.count * bytes_of(partial_type(arrays.type))) {}

Exchange::Progress TreeSumExchange::advance() {
  const ElementType partial = partial_type(arrays_.type);
  if (!std::exchange(begun_, true) && arrays_.sums != arrays_.data) {
    const std::array<const void*, 1> own{arrays_.data};
    transport_.sum(arrays_.type, own, arrays_.count, partial, arrays_.sums);
  }
  const std::size_t children = position_.children.size();
  const auto memory = [&](std::size_t child) { return arrays_.memory + child % 2 * bytes_; };
  const auto receive = [&](std::size_t child, Messages& messages) {
    messages.receive(position_.children[child], memory(child), bytes_);
  };
  const auto add = [&](std::size_t child) {
    const std::array<const void*, 2> both{arrays_.sums, memory(child)};
    transport_.sum(partial, both, arrays_.count, partial, arrays_.sums);
  };
  const bool added = added_.advance(transport_, children, receive, add);
  if (added_.ended() < children) return added ? Progress::moved : Progress::waiting;
  if (!position_.parent) return Progress::done;
  const auto send = [&](std::size_t, Messages& messages) { messages.send(*position_.parent, arrays_.sums, bytes_); };
  sent_.advance(transport_, 1, send, [](std::size_t) {});
  return sent_.ended() == 1 ? Progress::done : Progress::waiting;
}

TreePartsExchange::TreePartsExchange(Transport& transport, std::size_t rank, std::size_t ranks, std::size_t root,
                                     Direction direction, const Parts& bytes, std::byte* array)
    : ranks_(ranks),
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
