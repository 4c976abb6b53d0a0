#include "data/vocabulary.hpp"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "data/files.hpp"
#include "data/text_file.hpp"
#include "data/unicode.hpp"

namespace mylos::data {
namespace {

constexpr std::string_view blanks = " \t\r\n\v\f";

void check_token(std::string_view token, std::size_t line, std::string_view name) {
  if (token.empty()) fail(fmt::format("{}: line {} is blank; every line is one token, its id is its line", name, line));
  if (blanks.find(token.front()) != std::string_view::npos || blanks.find(token.back()) != std::string_view::npos) {
    fail(fmt::format("{}: line {}: white space around '{}'; it could never match, remove it", name, line,
                     printable(token)));
  }
}

/// Throws on what load() lists; returns `tokens`, so that it runs before anything is built from them.
std::vector<std::string> checked(std::vector<std::string> tokens, std::string_view name) {
  std::unordered_map<std::string_view, std::size_t> lines;
  lines.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    check_token(tokens[i], i + 1, name);
    const auto [first, is_new] = lines.emplace(tokens[i], i + 1);
    if (!is_new) {
      fail(fmt::format("{}: token '{}' stands on line {} and again on line {}", name, printable(tokens[i]),
                       first->second, i + 1));
    }
  }
  return tokens;
}

}  // namespace

Vocabulary Vocabulary::load(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  std::vector<std::string_view> lines = split_lines(text);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return {std::vector<std::string>(lines.begin(), lines.end()), path.string()};
}

Vocabulary::Vocabulary(std::vector<std::string> tokens, std::string_view name)
    : tokens_(checked(std::move(tokens), name)),
      trie_(tokens_),
      padding_(find_special("[PAD]", name)),
      unknown_(find_special("[UNK]", name)),
      classify_(find_special("[CLS]", name)),
      separator_(find_special("[SEP]", name)) {}

const std::string& Vocabulary::token(TokenId id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size()) {
    require(false, fmt::format("token id {} is not in the vocabulary of {} tokens", id, tokens_.size()));
  }
  return tokens_[static_cast<std::size_t>(id)];
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  const TokenId id = trie_.find(token);
  return id < 0 ? std::nullopt : std::optional<TokenId>(id);
}

TokenId Vocabulary::find_special(std::string_view token, std::string_view name) const {
  const TokenId id = trie_.find(token);
  if (id < 0) fail(fmt::format("{}: no line is {}; is this a BERT vocab.txt?", name, token));
  return id;
}

}  // namespace mylos::data
