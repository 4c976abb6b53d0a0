#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace mylos::parallel {

/// The tree along which ranks ask each other what they wait for. Ranks are numbered from the root, wrapping around
/// after the last rank; each has the next `arity` ranks without a parent as its children.
class WatchTree {
 public:
  static constexpr std::size_t arity = 4;

  WatchTree(std::size_t size, std::size_t root) : size_(size), root_(root) {}

  /// Returns nullopt for the root.
  std::optional<std::size_t> parent(std::size_t rank) const;
  std::vector<std::size_t> children(std::size_t rank) const;
  /// Distance from the root.
  std::size_t level(std::size_t rank) const;
  /// The largest level of any rank.
  std::size_t height() const;

 private:
  std::size_t position_of(std::size_t rank) const { return (rank + size_ - root_) % size_; }
  std::size_t rank_at(std::size_t position) const { return (position + root_) % size_; }

  std::size_t size_, root_;
};

/// Returns the ranks that may hold an inquiry; each is used if the previous ones do not answer. They are rank 0 and
/// ranks far from it, which are on other nodes if there are several.
std::vector<std::size_t> watch_heads(std::size_t size);

}  // namespace mylos::parallel
