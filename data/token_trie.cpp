#include "data/token_trie.hpp"

#include <algorithm>
#include <numeric>

namespace mylos::data {

/// Tokens order[first, last) share their first `depth` bytes, which lead to `node`.
struct TokenTrie::Pending {
  Node node;
  std::size_t first;
  std::size_t last;
  std::size_t depth;
};

TokenTrie::TokenTrie(std::span<const std::string> tokens) : entries_(1024) {
  std::vector<std::int32_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0);
  const auto token = [&](std::int32_t i) -> const std::string& { return tokens[static_cast<std::size_t>(i)]; };
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return token(a) < token(b); });
  entries_[root].check = root;
  std::vector<Pending> todo{{root, 0, tokens.size(), 0}};
  while (!todo.empty()) {
    const Pending pending = todo.back();
    todo.pop_back();
    place_children(pending, tokens, order, todo);
  }
}

void TokenTrie::place_children(const Pending& pending, std::span<const std::string> tokens,
                               std::span<const std::int32_t> order, std::vector<Pending>& todo) {
  std::vector<unsigned char> labels;
  std::vector<std::size_t> starts;
  for (std::size_t i = pending.first; i < pending.last; ++i) {
    const std::string& token = tokens[static_cast<std::size_t>(order[i])];
    if (token.size() == pending.depth) {  // sorted: a token that ends here is the first of the range
      entries_[static_cast<std::size_t>(pending.node)].id = order[i];
      continue;
    }
    const auto label = static_cast<unsigned char>(token[pending.depth]);
    if (!labels.empty() && labels.back() == label) continue;
    labels.push_back(label);
    starts.push_back(i);
  }
  if (labels.empty()) return;
  starts.push_back(pending.last);
  const std::int32_t base = find_base(labels);
  entries_[static_cast<std::size_t>(pending.node)].base = base;
  for (std::size_t k = 0; k < labels.size(); ++k) {
    const Node child = base + labels[k];
    entries_[static_cast<std::size_t>(child)].check = pending.node;
    todo.push_back({child, starts[k], starts[k + 1], pending.depth + 1});
  }
}

/// A base at which every label falls on a free entry; grows the table as needed. The search begins at `search_start_`,
/// which leaves a stretch behind once it is 95% taken: looking through it again for every node would be quadratic.
std::int32_t TokenTrie::find_base(std::span<const unsigned char> labels) {
  const std::size_t lowest = labels.front();
  std::size_t taken = 0;
  for (std::size_t position = std::max(search_start_, lowest + 1);; ++position) {
    const std::size_t base = position - lowest;
    if (base + 256 > entries_.size()) entries_.resize(entries_.size() * 2);
    const auto is_free = [&](unsigned char label) { return entries_[base + label].check == free_entry; };
    if (!is_free(labels.front())) ++taken;
    if (!std::all_of(labels.begin(), labels.end(), is_free)) continue;
    const std::size_t searched = position - std::min(position, search_start_) + 1;
    if (taken * 20 >= searched * 19) search_start_ = position;
    return static_cast<std::int32_t>(base);
  }
}

TokenTrie::Node TokenTrie::find_node(std::string_view text) const {
  Node node = root;
  for (const char byte : text) {
    node = step(node, byte);
    if (node == no_node) break;
  }
  return node;
}

std::int32_t TokenTrie::find(std::string_view text) const {
  const Node node = find_node(text);
  return node == no_node || text.empty() ? -1 : entries_[static_cast<std::size_t>(node)].id;
}

}  // namespace mylos::data
