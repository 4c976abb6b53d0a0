#include "data/tokenizer/json/models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/unicode.hpp"
#include "data/tokenizer/json/stage_table.hpp"

namespace mylos::data {
namespace {

/// Returns the id of a token of `vocab`: its number, or its place in a list.
std::size_t id_of(const ModelLists& lists, std::size_t index, const JsonLocation& location) {
  if (!lists.has_ids) return index;
  const double number = lists.tokens[index].number;
  const bool is_id = number >= 0 && number <= std::numeric_limits<TokenId>::max() &&
                     number == static_cast<double>(static_cast<TokenId>(number));
  if (!is_id) {
    location.fail(fmt::format("the id of '{}' is {}: expected a whole number that is not negative",
                              printable(lists.view(lists.tokens[index].entry)), number));
  }
  return static_cast<std::size_t>(number);
}

/// Returns the type of a model. Older files do not name it; `tokenizers` takes the first whose fields are all there.
std::string type_of(const Json& json, const JsonLocation& location) {
  if (find_member(json, "type", location) != nullptr) return string_member(json, "type", location);
  if (json.contains("merges")) return "BPE";
  if (member(json, "vocab", location).is_array()) return "Unigram";
  return json.contains("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

constexpr std::string_view bpe_fields =
    "vocab merges dropout unk_token continuing_subword_prefix end_of_word_suffix fuse_unk byte_fallback ignore_merges";

constexpr double unknown_penalty = 10;  // below the lowest score

/// Returns a score as `tokenizers` reads it: its digits as a whole number, divided by a power of ten. Both roundings
/// together may miss the nearest number, which decides between the same tokens in another order.
double rounded_twice(double score) {
  std::uint64_t digits = 0;
  double divisor = 0;
  for (const char c : fmt::format("{}", std::abs(score))) {
    if (c != '.' && (c < '0' || c > '9')) return score;  // an exponent
    digits = c == '.' ? digits : 10 * digits + static_cast<std::uint64_t>(c - '0');
    divisor = c == '.' ? 1 : 10 * divisor;
  }
  return std::copysign(static_cast<double>(digits) / (divisor > 0 ? divisor : 1), score);
}

/// The best tokens of the first bytes of a word: their score, and the last of them. An id of -1: none yet.
struct BestPath {
  double score = 0;
  std::size_t begin = 0;
  TokenId id = -1;

  void improve(const BestPath& other) {
    if (id < 0 || other.score > score) *this = other;
  }
};

}  // namespace

TokenTrie make_trie(const TokenTable& table) {
  std::vector<std::string> tokens(table.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) tokens[id] = table.token(static_cast<TokenId>(id));
  std::vector<std::int32_t> order = sorted_ids(tokens);
  std::erase_if(order, [&](std::int32_t id) { return tokens[static_cast<std::size_t>(id)].empty(); });
  return {tokens, order};
}

TokenTable read_tokens(const ModelLists& lists, const JsonLocation& location) {
  const JsonLocation within(location, "vocab");
  const std::size_t count = lists.tokens.size();
  if (count == 0) within.fail("there is no token");
  constexpr TokenTable::Entry absent{0, std::numeric_limits<std::uint32_t>::max()};
  std::vector<TokenTable::Entry> entries(count, absent);
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t id = id_of(lists, i, within);
    const std::string_view token = lists.view(lists.tokens[i].entry);
    if (id >= count) {
      within.fail(fmt::format("'{}' has the id {}, and there are {} tokens: an id is missing or there twice",
                              printable(token), id, count));
    }
    if (entries[id].size != absent.size) {
      const std::string_view other = std::string_view(text).substr(entries[id].begin, entries[id].size);
      within.fail(fmt::format("'{}' and '{}' have the id {}", printable(other), printable(token), id));
    }
    entries[id] = {static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(token.size())};
    text += token;
  }
  TokenTable table(std::move(text), std::move(entries));
  for (std::size_t id = 0; id < count; ++id) {
    const std::string_view token = table.token(static_cast<TokenId>(id));
    const TokenId other = table.find(token);
    if (other != static_cast<TokenId>(id)) {
      within.fail(fmt::format("the token '{}' is there twice, with the ids {} and {}", printable(token), id, other));
    }
  }
  return table;
}

WordPieceModel::WordPieceModel(const Json& json, const JsonLocation& location, const TokenTable& table)
    : trie_(make_trie(table)) {
  const std::string prefix = string_or(json, "continuing_subword_prefix", "##", location);
  continuation_ = trie_.find_node(prefix);
  const std::string unknown = string_or(json, "unk_token", "[UNK]", location);
  unknown_ = table.find(unknown);
  if (unknown_ < 0) JsonLocation(location, "unk_token").fail(fmt::format("'{}' is not in vocab", printable(unknown)));
  const Json* longest = find_member(json, "max_input_chars_per_word", location);
  longest_word_ = longest == nullptr ? 100 : as_count(*longest, JsonLocation(location, "max_input_chars_per_word"));
}

void WordPieceModel::tokenize(std::string_view word, const TokenTable&, std::vector<WordToken>& tokens) const {
  const std::size_t before = tokens.size();
  const bool is_too_long = word.size() > longest_word_ && count_code_points(word) > longest_word_;
  TokenTrie::Node start = TokenTrie::root;
  for (std::size_t begin = 0; begin < word.size();) {
    const auto match =
        is_too_long || start == TokenTrie::no_node ? TokenTrie::Match{} : trie_.longest_match(start, word, begin);
    if (match.id < 0) {
      tokens.resize(before);
      return tokens.push_back({unknown_, 0, word.size()});
    }
    tokens.push_back({match.id, begin, match.end});
    begin = match.end;
    start = continuation_;
  }
}

UnigramModel::UnigramModel(const Json& json, const JsonLocation& location, const ModelLists& lists,
                           const TokenTable& table)
    : trie_(make_trie(table)), has_bytes_(bool_or(json, "byte_fallback", false, location)) {
  list_member(json, "vocab", location);
  const JsonLocation within(location, "unk_id");
  const Json* given = find_member(json, "unk_id", location);
  if (given != nullptr && !given->is_null()) {
    const std::size_t unknown = as_count(*given, within);
    if (unknown >= table.size()) within.fail(fmt::format("{} is no id; there are {} tokens", unknown, table.size()));
    unknown_ = static_cast<TokenId>(unknown);
  } else {
    unknown_place_ = within.text();
  }
  double lowest = std::numeric_limits<double>::infinity();
  scores_.reserve(lists.tokens.size());
  for (const ModelLists::Token& token : lists.tokens) {
    scores_.push_back(rounded_twice(token.number));
    lowest = std::min(lowest, scores_.back());
  }
  unknown_score_ = lowest - unknown_penalty;
}

void UnigramModel::tokenize(std::string_view word, const TokenTable& table, std::vector<WordToken>& tokens) const {
  thread_local std::vector<BestPath> best;  // by the end of the path
  best.assign(word.size() + 1, {});
  for (std::size_t begin = 0; begin < word.size();) {
    std::size_t next = begin;
    decode_code_point(word, next);
    bool has_character = false;
    const double score = best[begin].score;
    trie_.each_match(TokenTrie::root, word, begin, [&](const TokenTrie::Match& match) {
      best[match.end].improve({score + scores_[static_cast<std::size_t>(match.id)], begin, match.id});
      has_character |= match.end == next;
    });
    if (!has_character && unknown_ < 0) {
      const std::string_view character = word.substr(begin, next - begin);
      fail(fmt::format("{}: null: no token stands for '{}', which vocab lacks", unknown_place_, printable(character)));
    }
    if (!has_character) best[next].improve({score + unknown_score_, begin, unknown_});
    begin = next;
  }
  const std::size_t first = tokens.size();
  for (std::size_t end = word.size(); end > 0;) {
    const BestPath& path = best[end];
    const bool joins = path.id == unknown_ && tokens.size() > first && tokens.back().id == unknown_;
    joins ? tokens.back().begin = path.begin : (tokens.push_back({path.id, path.begin, end}), 0);
    end = path.begin;
  }
  std::reverse(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end());
  const auto is_unknown = [this](const WordToken& token) { return token.id == unknown_; };
  if (std::none_of(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end(), is_unknown)) return;
  const std::vector<WordToken> parts(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end());
  tokens.resize(first);
  for (const WordToken& part : parts) {
    is_unknown(part) ? append_unknown(word, part, table, tokens) : tokens.push_back(part);
  }
}

/// Appends what stands for a run of unknown characters: a token of their text, which several of them may make, their
/// bytes, or the unknown token.
void UnigramModel::append_unknown(std::string_view word, const WordToken& part, const TokenTable& table,
                                  std::vector<WordToken>& tokens) const {
  const std::string_view text = word.substr(part.begin, part.end - part.begin);
  const TokenId whole = table.find(text);
  if (whole >= 0) return tokens.push_back({whole, part.begin, part.end});
  std::vector<WordToken> bytes;
  for (const char byte : text) {
    const TokenId id = has_bytes_ ? table.find_byte(static_cast<unsigned char>(byte)) : -1;
    if (id < 0) return tokens.push_back(part);
    bytes.push_back({id, part.begin, part.end});
  }
  tokens.insert(tokens.end(), bytes.begin(), bytes.end());
}

TokenModel read_model(const Json& json, const JsonLocation& location, const ModelLists& lists,
                      const TokenTable& table) {
  const std::string type = type_of(json, location);
  if (type == "BPE") {
    as_object(member(json, "vocab", location), JsonLocation(location, "vocab"));
    list_member(json, "merges", location);
    check_fields(json, bpe_fields, location);
    return BpeModel(json, location, lists, table);
  }
  if (type == "WordPiece") {
    as_object(member(json, "vocab", location), JsonLocation(location, "vocab"));
    check_fields(json, "vocab unk_token continuing_subword_prefix max_input_chars_per_word", location);
    return WordPieceModel(json, location, table);
  }
  if (type == "Unigram") {
    check_fields(json, "vocab unk_id byte_fallback", location);
    return UnigramModel(json, location, lists, table);
  }
  location.fail(fmt::format("the type {} is not supported", printable(type)));
}

}  // namespace mylos::data
