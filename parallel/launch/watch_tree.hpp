#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace mylos::parallel {

/// The tree along which ranks ask each other what they wait for. Counted from its root, and from the first rank again
/// after the last, each has the next `arity` that have no parent yet as children.
class WatchTree {
 public:
  static constexpr std::size_t arity = 4;

  WatchTree(std::size_t size, std::size_t root) : size_(size), root_(root) {}

  /// Empty for the root.
  std::optional<std::size_t> parent(std::size_t rank) const;
  std::vector<std::size_t> children(std::size_t rank) const;
  /// Steps from the root to the rank.
  std::size_t level(std::size_t rank) const;
  /// The largest level of a rank.
  std::size_t height() const;

 private:
  std::size_t place_of(std::size_t rank) const { return (rank + size_ - root_) % size_; }
  std::size_t rank_at(std::size_t position) const { return (position + root_) % size_; }

  std::size_t size_, root_;
};

/// The ranks that hold an inquiry, each where those before do not answer: the first one, and others far from it, which
/// are on other nodes where there are several.
std::vector<std::size_t> watch_heads(std::size_t size);

}  // namespace mylos::parallel
