#include "parallel/launch/watch_tree.hpp"

#include <algorithm>

namespace mylos::parallel {
namespace {

std::size_t level_of_position(std::size_t position) {
  std::size_t level = 0;
  for (; position > 0; position = (position - 1) / WatchTree::arity) ++level;
  return level;
}

}  // namespace

std::optional<std::size_t> WatchTree::parent(std::size_t rank) const {
  const std::size_t position = position_of(rank);
  if (position == 0) return std::nullopt;
  return rank_at((position - 1) / arity);
}

std::vector<std::size_t> WatchTree::children(std::size_t rank) const {
  const std::size_t first = arity * position_of(rank) + 1;
  std::vector<std::size_t> children;
  for (std::size_t position = first; position < std::min(first + arity, size_); ++position)
    children.push_back(rank_at(position));
  return children;
}

std::size_t WatchTree::level(std::size_t rank) const { return level_of_position(position_of(rank)); }

std::size_t WatchTree::height() const { return level_of_position(size_ - 1); }

std::vector<std::size_t> watch_heads(std::size_t size) {
  std::vector<std::size_t> heads;
  for (const std::size_t head : {std::size_t{0}, size / 2, size / 4, size / 2 + size / 4}) {
    if (std::find(heads.begin(), heads.end(), head) == heads.end()) heads.push_back(head);
  }
  return heads;
}

}  // namespace mylos::parallel
