#include "data/tokenizer/token_trie.hpp"

#include <algorithm>

namespace mylos::data {
namespace {

/// Sort key of a token. Most tokens differ in their first 8 bytes, which are compared as one number.
struct SortKey {
  std::uint64_t first;
  std::int32_t id;
};

/// Returns the first 8 bytes, the first one most significant, padded with zeros.
std::uint64_t first_bytes(std::string_view token) {
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < sizeof first; ++i) {
    first = first << 8U | (i < token.size() ? static_cast<unsigned char>(token[i]) : 0U);
  }
  return first;
}

}  // namespace

/// Tokens order[first, last) have the same first `depth` bytes, which lead to `node`.
struct TokenTrie::Pending {
  Node node;
  std::size_t first;
  std::size_t last;
  std::size_t depth;
};

std::vector<std::int32_t> sorted_ids(std::span<const std::string> tokens) {
  std::vector<SortKey> keys;
  keys.reserve(tokens.size());
  for (const std::string& token : tokens) keys.push_back({first_bytes(token), static_cast<std::int32_t>(keys.size())});
  const auto token = [&](const SortKey& key) -> const std::string& { return tokens[static_cast<std::size_t>(key.id)]; };
  std::sort(keys.begin(), keys.end(), [&](const SortKey& a, const SortKey& b) {
    if (a.first != b.first) return a.first < b.first;
    const int order = token(a).compare(token(b));
    return order != 0 ? order < 0 : a.id < b.id;
  });
  std::vector<std::int32_t> ids;
  ids.reserve(keys.size());
  for (const SortKey& key : keys) ids.push_back(key.id);
  return ids;
}

TokenTrie::TokenTrie(std::span<const std::string> tokens) : TokenTrie(tokens, sorted_ids(tokens)) {}

TokenTrie::TokenTrie(std::span<const std::string> tokens, std::span<const std::int32_t> order) : entries_(1024) {
  entries_[root].check = root;
  std::vector<Pending> todo{{root, 0, order.size(), 0}};
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
    if (token.size() == pending.depth) {  // as the range is sorted, a token that ends here is its first
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

/// Finds a base at which every label has a free entry, and grows the table as needed. The search starts at
/// `search_start_`, which skips a stretch once it is 95% occupied: searching it again for every node would be
/// quadratic.
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
