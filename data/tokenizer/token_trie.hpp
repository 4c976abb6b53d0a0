#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::data {

/// 0, 1, ... in the order of the bytes of `tokens`; of equal tokens the first comes first.
std::vector<std::int32_t> sorted_ids(std::span<const std::string> tokens);

/// Finds the longest stored token that begins a text, in one walk over its bytes: a double-array trie
/// (Aoe 1989: node `base[s] + byte` is the child of s if its `check` is s). Read-only once built.
class TokenTrie {
 public:
  using Node = std::int32_t;
  static constexpr Node root = 0;
  static constexpr Node no_node = -1;

  /// The end of the longest token found and its id; id -1 if there is none.
  struct Match {
    std::size_t end = 0;
    std::int32_t id = -1;
  };

  /// `tokens[i]` gets id i. Tokens must be distinct and not empty; `order` is their sorted_ids.
  TokenTrie(std::span<const std::string> tokens, std::span<const std::int32_t> order);
  explicit TokenTrie(std::span<const std::string> tokens);

  /// The longest token that continues from `node` with text[begin...].
  Match longest_match(Node node, std::string_view text, std::size_t begin) const {
    Match match;
    for (std::size_t i = begin; i < text.size(); ++i) {
      node = step(node, text[i]);
      if (node == no_node) break;
      const std::int32_t id = entries_[static_cast<std::size_t>(node)].id;
      if (id >= 0) match = {i + 1, id};
    }
    return match;
  }

  /// The node that `text` leads to from the root, or no_node.
  Node find_node(std::string_view text) const;

  /// The id of exactly `text`, or -1.
  std::int32_t find(std::string_view text) const;

 private:
  struct Entry {
    std::int32_t base = 0;
    std::int32_t check = free_entry;
    std::int32_t id = -1;
  };
  struct Pending;  // a node whose children are still to be placed
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
  std::size_t search_start_ = 1;  // where find_base begins to look
};

}  // namespace mylos::data
