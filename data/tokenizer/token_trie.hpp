#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::data {

/// Returns the ids 0, 1, ... sorted by the bytes of `tokens`. Of equal tokens the one with the lower id comes first.
std::vector<std::int32_t> sorted_ids(std::span<const std::string> tokens);

/// Finds the longest token at the start of a text in one pass over its bytes, with a double-array trie (Aoe 1989: node
/// `base[s] + byte` is the child of s if its `check` is s). Immutable once built.
class TokenTrie {
 public:
  using Node = std::int32_t;
  static constexpr Node root = 0;
  static constexpr Node no_node = -1;

  /// The end of the longest token found and its id, or id -1 if there is none.
  struct Match {
    std::size_t end = 0;
    std::int32_t id = -1;
  };

  /// Assigns id i to `tokens[i]`. Those in `order`, which is their sorted_ids or a part of it, must be distinct and not
  /// empty; the others are never found.
  TokenTrie(std::span<const std::string> tokens, std::span<const std::int32_t> order);
  explicit TokenTrie(std::span<const std::string> tokens);

  /// Calls `use(match)` for each token that continues from `node` with text[begin...], the shortest first.
  template <class Use>
  void each_match(Node node, std::string_view text, std::size_t begin, Use use) const {
    for (std::size_t i = begin; i < text.size(); ++i) {
      node = step(node, text[i]);
      if (node == no_node) break;
      const std::int32_t id = entries_[static_cast<std::size_t>(node)].id;
      if (id >= 0) use(Match{i + 1, id});
    }
  }
  /// Returns the longest of them.
  Match longest_match(Node node, std::string_view text, std::size_t begin) const {
    Match longest;
    each_match(node, text, begin, [&](const Match& match) { longest = match; });
    return longest;
  }

  /// Returns the node reached from the root by `text`, or no_node.
  Node find_node(std::string_view text) const;

  /// Returns the id of exactly `text`, or -1.
  std::int32_t find(std::string_view text) const;

 private:
  struct Entry {
    std::int32_t base = 0;
    std::int32_t check = free_entry;
    std::int32_t id = -1;
  };
  struct Pending;  // a node whose children have no entries yet
  static constexpr std::int32_t free_entry = -1;

  Node step(Node node, char byte) const {
    const auto next =
        static_cast<std::size_t>(entries_[static_cast<std::size_t>(node)].base) + static_cast<unsigned char>(byte);
    return next < entries_.size() && entries_[next].check == node ? static_cast<Node>(next) : no_node;
  }
  std::int32_t find_base(std::span<const unsigned char> labels);
  void place_children(const Pending& pending, std::span<const std::string> tokens, std::span<const std::int32_t> order,
                      std::vector<Pending>& todo);

  std::vector<Entry> entries_;
  std::size_t search_start_ = 1;  // where find_base starts its search
};

}  // namespace mylos::data
