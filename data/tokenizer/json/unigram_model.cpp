#include <algorithm>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/unicode.hpp"
#include "data/tokenizer/json/models.hpp"
#include "data/tokenizer/json/stage_table.hpp"

namespace mylos::data {
namespace {

constexpr double unknown_penalty = 10;  // below the lowest score

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
    scores_.push_back(token.number);
    lowest = std::min(lowest, token.number);
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

}  // namespace mylos::data
