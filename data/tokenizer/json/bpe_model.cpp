#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <span>

#include "core/base/text/printable.hpp"
#include "core/base/text/unicode.hpp"
#include "data/tokenizer/json/models.hpp"
#include "data/tokenizer/json/stage_table.hpp"

namespace mylos::data {
namespace {

constexpr std::uint32_t no_rank = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t few_symbols = 40;  // up to which the best merge is sought among all

std::uint64_t pair_of(TokenId left, TokenId right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U) | static_cast<std::uint32_t>(right);
}

/// The symbols of a word while they are merged, in a list.
struct LinkedSymbol {
  std::size_t before = 0;
  std::size_t after = 0;         // the number of symbols if there is none
  std::uint32_t rank = no_rank;  // of the merge with the symbol after it
};
struct Candidate {
  std::uint32_t rank;
  std::size_t symbol;
  /// Orders a heap by the lowest rank, then from the left.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : symbol > other.symbol;
  }
};

}  // namespace

BpeModel::BpeModel(const Json& json, const JsonLocation& location, const ModelLists& lists, const TokenTable& table)
    : prefix_(string_or(json, "continuing_subword_prefix", "", location)),
      suffix_(string_or(json, "end_of_word_suffix", "", location)),
      fuses_unknown_(bool_or(json, "fuse_unk", false, location)),
      has_bytes_(bool_or(json, "byte_fallback", false, location)),
      ignores_merges_(bool_or(json, "ignore_merges", false, location)) {
  const Json* dropout = find_member(json, "dropout", location);
  if (dropout != nullptr && !dropout->is_null() && as_number(*dropout, JsonLocation(location, "dropout")) != 0) {
    JsonLocation(location, "dropout").fail("a dropout of merges is not supported; only null is");
  }
  if (has_bytes_ && !(prefix_.empty() && suffix_.empty())) {
    JsonLocation(location, "byte_fallback").fail("not supported with continuing_subword_prefix or end_of_word_suffix");
  }
  const std::string unknown = string_or(json, "unk_token", "", location);
  if (!unknown.empty()) {
    unknown_ = table.find(unknown);
    if (unknown_ < 0) JsonLocation(location, "unk_token").fail(fmt::format("'{}' is not in vocab", printable(unknown)));
  }
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte)
    bytes_[byte] = table.find_byte(static_cast<unsigned char>(byte));
  for (std::size_t c = 0; c < symbols_.size(); ++c) {
    std::string character;
    append_utf8(character, static_cast<char32_t>(c));
    symbols_[c] = table.find(character);
  }
  add_merges(location, lists, table);
  find_word_starts(lists, table);
}

void BpeModel::add_merges(const JsonLocation& location, const ModelLists& lists, const TokenTable& table) {
  merges_.resize(std::bit_ceil(2 * lists.merges.size() + 2));
  const JsonLocation within(location, "merges");
  std::string merged;
  for (std::size_t i = 0; i < lists.merges.size(); ++i) {
    const std::string_view left = lists.view(lists.merges[i].left);
    const std::string_view right = lists.view(lists.merges[i].right);
    const auto find = [&](std::string_view token) {
      const TokenId id = table.find(token);
      if (id < 0) JsonLocation(within, i).fail(fmt::format("the token '{}' is not in vocab", printable(token)));
      return id;
    };
    const std::uint64_t pair = pair_of(find(left), find(right));
    merged.assign(left);
    merged += right.starts_with(prefix_) ? right.substr(prefix_.size()) : right;
    merges_[slot_of(pair)] = {pair, static_cast<std::uint32_t>(i), find(merged)};
  }
}

void BpeModel::find_word_starts(const ModelLists& lists, const TokenTable& table) {
  starts_.assign(table.size(), false);
  if (!prefix_.empty() || !suffix_.empty()) return;
  for (std::size_t id = 0; id < table.size(); ++id) {
    const std::string_view token = table.token(static_cast<TokenId>(id));
    starts_[id] = !token.empty() && first_character(token).size() == token.size();
  }
  for (const ModelLists::Merge& merge : lists.merges) {
    const std::string_view before = last_character(lists.view(merge.left));
    const std::string_view first = first_character(lists.view(merge.right));
    const TokenId symbol = before == first ? -1 : table.find(first);
    if (symbol >= 0) starts_[static_cast<std::size_t>(symbol)] = false;
  }
}

std::size_t BpeModel::slot_of(std::uint64_t pair) const {
  const std::size_t mask = merges_.size() - 1;
  std::size_t slot = ((pair * 0x9E3779B97F4A7C15ULL) >> 32U) & mask;
  while (merges_[slot].pair != pair && merges_[slot].pair != free_pair) slot = (slot + 1) & mask;
  return slot;
}

const BpeModel::Merge* BpeModel::find_merge(TokenId left, TokenId right) const {
  const Merge& merge = merges_[slot_of(pair_of(left, right))];
  return merge.merged < 0 ? nullptr : &merge;
}

TokenId BpeModel::symbol(std::string_view character, bool is_first, bool is_last, const TokenTable& table) const {
  if (prefix_.empty() && suffix_.empty()) {
    std::size_t position = 0;
    const char32_t c = decode_code_point(character, position);
    return c < symbols_.size() ? symbols_[c] : table.find(character);
  }
  std::string token = is_first ? "" : prefix_;
  token += character;
  if (is_last) token += suffix_;
  return table.find(token);
}

void BpeModel::tokenize(std::string_view word, const TokenTable& table, std::vector<WordToken>& tokens) const {
  const TokenId whole = ignores_merges_ ? table.find(word) : -1;
  if (whole >= 0) return tokens.push_back({whole, 0, word.size()});
  const std::size_t first = tokens.size();
  std::size_t end = 0;  // symbols follow each other without gaps, as in `tokenizers`, even where characters are dropped
  const auto add = [&](TokenId id, std::size_t size) {
    tokens.push_back({id, end, end + size});
    end += size;
  };
  std::size_t unknown = 0;  // bytes of unknown characters that are not added yet
  const auto add_unknown = [&] {
    if (unknown > 0) add(unknown_, std::exchange(unknown, 0));
  };
  for (std::size_t position = 0; position < word.size();) {
    const std::size_t begin = position;
    decode_code_point(word, position);
    const std::string_view character = word.substr(begin, position - begin);
    const TokenId id = symbol(character, begin == 0, position == word.size(), table);
    const auto has_byte = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)] >= 0; };
    if (id >= 0) {
      add_unknown();
      add(id, character.size());
    } else if (has_bytes_ && std::all_of(character.begin(), character.end(), has_byte)) {
      for (const char byte : character) add(bytes_[static_cast<unsigned char>(byte)], 1);
    } else if (unknown_ >= 0) {
      if (!fuses_unknown_) add_unknown();
      unknown += character.size();
    }
  }
  add_unknown();
  merge_symbols(tokens, first);
}

/// Merges the parts of the word that no merge joins one by one.
void BpeModel::merge_symbols(std::vector<WordToken>& tokens, std::size_t first) const {
  std::size_t kept = first;
  for (std::size_t begin = first; begin < tokens.size();) {
    std::size_t end = begin + 1;
    while (end < tokens.size() &&
           !(starts_[static_cast<std::size_t>(tokens[end].id)] && tokens[end].id != tokens[end - 1].id)) {
      ++end;
    }
    std::size_t count = end - begin;
    count <= few_symbols ? merge_few(&tokens[begin], count) : merge_many(&tokens[begin], count);
    std::copy_n(tokens.begin() + static_cast<std::ptrdiff_t>(begin), count,
                tokens.begin() + static_cast<std::ptrdiff_t>(kept));
    kept += count;
    begin = end;
  }
  tokens.resize(kept);
}

void BpeModel::merge_few(WordToken* symbols, std::size_t& count) const {
  const Merge* merges[few_symbols] = {};  // of each symbol with the next
  for (std::size_t i = 0; i + 1 < count; ++i) merges[i] = find_merge(symbols[i].id, symbols[i + 1].id);
  while (count > 1) {
    std::size_t best = 0;
    std::uint32_t lowest = no_rank;
    for (std::size_t i = 0; i + 1 < count; ++i) {
      if (merges[i] == nullptr || merges[i]->rank >= lowest) continue;
      lowest = merges[i]->rank;
      best = i;
    }
    if (lowest == no_rank) return;
    symbols[best] = {merges[best]->merged, symbols[best].begin, symbols[best + 1].end};
    std::copy(symbols + best + 2, symbols + count, symbols + best + 1);
    std::copy(merges + best + 2, merges + count, merges + best + 1);
    --count;
    merges[best] = best + 1 < count ? find_merge(symbols[best].id, symbols[best + 1].id) : nullptr;
    if (best > 0) merges[best - 1] = find_merge(symbols[best - 1].id, symbols[best].id);
  }
}

void BpeModel::merge_many(WordToken* symbols, std::size_t& count) const {
  std::vector<LinkedSymbol> links(count);
  std::vector<Candidate> heap;
  const auto propose = [&](std::size_t i) {
    const Merge* merge = links[i].after < count ? find_merge(symbols[i].id, symbols[links[i].after].id) : nullptr;
    links[i].rank = merge == nullptr ? no_rank : merge->rank;
    if (merge != nullptr) heap.push_back({merge->rank, i});
    return merge != nullptr;
  };
  for (std::size_t i = 0; i < count; ++i) links[i] = {.before = i == 0 ? count : i - 1, .after = i + 1};
  for (std::size_t i = 0; i < count; ++i) propose(i);
  std::make_heap(heap.begin(), heap.end());
  const auto propose_later = [&](std::size_t i) {
    if (propose(i)) std::push_heap(heap.begin(), heap.end());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate best = heap.back();
    heap.pop_back();
    const std::size_t i = best.symbol;
    if (links[i].rank != best.rank) continue;  // merged since
    const std::size_t next = links[i].after;
    symbols[i] = {find_merge(symbols[i].id, symbols[next].id)->merged, symbols[i].begin, symbols[next].end};
    symbols[next].id = -1;
    links[next].rank = no_rank;
    links[i].after = links[next].after;
    if (links[i].after < count) links[links[i].after].before = i;
    propose_later(i);
    if (links[i].before < count) propose_later(links[i].before);
  }
  count = static_cast<std::size_t>(
      std::remove_if(symbols, symbols + count, [](const WordToken& symbol) { return symbol.id < 0; }) - symbols);
}

}  // namespace mylos::data
