#include "data/tokenizer/json/added_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text/printable.hpp"
#include "data/tokenizer/bert_unicode.hpp"
#include "data/tokenizer/json/stage_table.hpp"

namespace mylos::data {
namespace {

char32_t first_of(std::string_view text) {
  std::size_t position = 0;
  return decode_code_point(text, position);
}

bool is_within_word(std::string_view before, std::string_view after) {
  return (!before.empty() && is_word_character(first_of(last_character(before)))) ||
         (!after.empty() && is_word_character(first_of(after)));
}

/// Returns the number of bytes of white space at the end of `text`.
std::size_t blank_end(std::string_view text) {
  const std::size_t size = text.size();
  while (!text.empty() && is_bert_whitespace(first_of(last_character(text)))) {
    text.remove_suffix(last_character(text).size());
  }
  return size - text.size();
}

/// Returns the number of bytes of white space at the start of `text`.
std::size_t blank_start(std::string_view text) {
  std::size_t end = 0;
  for (std::size_t next = 0; next < text.size(); end = next) {
    if (!is_bert_whitespace(decode_code_point(text, next))) break;
  }
  return end;
}

std::vector<std::int32_t> order_of(const std::vector<std::string>& texts) {
  std::vector<std::int32_t> order = sorted_ids(texts);
  std::erase_if(order, [&](std::int32_t i) { return texts[static_cast<std::size_t>(i)].empty(); });
  const auto same = [&](std::int32_t a, std::int32_t b) {
    return texts[static_cast<std::size_t>(a)] == texts[static_cast<std::size_t>(b)];
  };
  order.erase(std::unique(order.begin(), order.end(), same), order.end());  // the first of equal ones is found
  return order;
}

}  // namespace

AddedTokens::Finder::Finder(const std::vector<std::string>& texts) : trie(texts, order_of(texts)) {
  for (const std::string& text : texts) {
    if (!text.empty()) begins[static_cast<unsigned char>(text.front())] = true;
  }
}

AddedTokens::AddedTokens(const Json& json, const JsonLocation& location, const TokenTable& table,
                         const Normalizer& normalizer)
    : size_(table.size()) {
  if (json.is_null()) return;
  for (const Json& element : as_list(json, location)) {
    const JsonLocation within(location, tokens_.size());
    Token token = read(element, within);
    const TokenId known = table.find(token.content);
    token.id = known >= 0 ? known : static_cast<TokenId>(size_);
    const std::string name = printable(token.content);
    const std::size_t given = count_member(element, "id", within);
    if (!ids_.emplace(token.content, token.id).second) within.fail(fmt::format("the token '{}' is there twice", name));
    if (given != static_cast<std::size_t>(token.id)) {
      within.fail(fmt::format("the id of '{}' is {}; {} is {}", name, given,
                              known >= 0 ? "in model.vocab it" : "the first that is free", token.id));
    }
    AlignedText sought = aligned(token.content);
    if (token.is_normalized) normalizer(sought);
    if (sought.text.empty()) within.fail(fmt::format("nothing is left of the token '{}' when it is normalized", name));
    token.sought = std::move(sought.text);
    if (known < 0) ++size_;
    tokens_.push_back(std::move(token));
  }
  std::stable_partition(tokens_.begin(), tokens_.end(), [](const Token& token) { return token.is_special; });
  by_id_.assign(size_, -1);
  for (std::size_t i = 0; i < tokens_.size(); ++i)
    by_id_[static_cast<std::size_t>(tokens_[i].id)] = static_cast<int>(i);
  plain_.emplace(texts(false));
  normalized_.emplace(texts(true));
}

AddedTokens::Token AddedTokens::read(const Json& json, const JsonLocation& location) {
  check_fields(json, "id content single_word lstrip rstrip normalized special", location);
  Token token{.content = string_member(json, "content", location),
              .is_special = bool_or(json, "special", false, location),
              .is_single_word = bool_or(json, "single_word", false, location),
              .strips_left = bool_or(json, "lstrip", false, location),
              .strips_right = bool_or(json, "rstrip", false, location),
              .is_normalized = bool_or(json, "normalized", true, location)};
  if (token.content.empty()) location.fail("the token is empty");
  return token;
}

/// Returns what is sought in a text for each token; empty for those that are not sought in this kind of text.
std::vector<std::string> AddedTokens::texts(bool normalized) const {
  std::vector<std::string> result;
  result.reserve(tokens_.size());
  for (const Token& token : tokens_) result.push_back(token.is_normalized == normalized ? token.sought : "");
  return result;
}

TokenId AddedTokens::find(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  return found == ids_.end() ? -1 : found->second;
}

const std::string* AddedTokens::token(TokenId id) const {
  const int index = static_cast<std::size_t>(id) < by_id_.size() ? by_id_[static_cast<std::size_t>(id)] : -1;
  return index < 0 ? nullptr : &tokens_[static_cast<std::size_t>(index)].content;
}

bool AddedTokens::is_special(TokenId id) const {
  return token(id) != nullptr && tokens_[static_cast<std::size_t>(by_id_[static_cast<std::size_t>(id)])].is_special;
}

PiecedText AddedTokens::split(std::string_view text, const Normalizer& normalizer) const {
  PiecedText pieced{.aligned = aligned(text), .pieces = {{0, text.size(), -1}}};
  const auto cut_all = [&](const std::optional<Finder>& finder) {
    pieced.split([&](const Piece& piece, std::vector<Piece>& out) {
      if (!finder) return out.push_back(piece);
      cut(pieced.view(piece), piece.begin, *finder, out);
    });
  };
  cut_all(plain_);
  AlignedText part;
  pieced.rewrite([&](const Piece& piece, AlignedText& out) {
    part.clear();
    part.append(pieced.view(piece), pieced.origins(piece));
    normalizer(part);
    out.append(part.text, part.origins);
  });
  cut_all(normalized_);
  return pieced;
}

/// Cuts a text at its tokens, the longest from the left. Those that do not stand as a word are passed over as a whole.
void AddedTokens::cut(std::string_view text, std::size_t offset, const Finder& finder, std::vector<Piece>& out) const {
  std::size_t done = 0;
  for (std::size_t position = 0; position < text.size();) {
    const bool may = finder.begins[static_cast<unsigned char>(text[position])];
    const TokenTrie::Match match =
        may ? finder.trie.longest_match(TokenTrie::root, text, position) : TokenTrie::Match{};
    if (match.id < 0) {
      ++position;
      continue;
    }
    const Token& token = tokens_[static_cast<std::size_t>(match.id)];
    std::size_t begin = position;
    std::size_t end = position = match.end;
    if (token.is_single_word && is_within_word(text.substr(0, begin), text.substr(end))) continue;
    if (token.strips_left) begin = std::max(begin - blank_end(text.substr(0, begin)), done);
    if (token.strips_right) end += blank_start(text.substr(end));
    if (done < begin) out.push_back({offset + done, offset + begin, -1});
    out.push_back({offset + begin, offset + end, token.id});
    done = end;
  }
  if (done < text.size()) out.push_back({offset + done, offset + text.size(), -1});
}

}  // namespace mylos::data
