#include "data/tokenizer/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/unicode.hpp"

namespace mylos::data {
namespace {

bool is_blank(std::string_view token) { return token.find_first_not_of(" \t\r\v\f") == std::string_view::npos; }

/// Returns the ids sorted by token, without those of blank lines. Throws if two tokens are equal.
std::vector<std::int32_t> distinct_ids(const std::vector<std::string>& tokens, std::string_view name) {
  std::vector<std::int32_t> ids = sorted_ids(tokens);
  const auto token = [&](std::int32_t id) -> const std::string& { return tokens[static_cast<std::size_t>(id)]; };
  std::erase_if(ids, [&](std::int32_t id) { return is_blank(token(id)); });
  const auto twice = std::adjacent_find(ids.begin(), ids.end(), [&](auto a, auto b) { return token(a) == token(b); });
  if (twice != ids.end()) {
    fail(fmt::format("{}: token '{}' stands on line {} and again on line {}", name, printable(token(*twice)),
                     twice[0] + 1, twice[1] + 1));
  }
  return ids;
}

}  // namespace

std::uint32_t wordpiece_checksum(std::uint32_t vocabulary, const TokenizerOptions& options) {
  const std::array<std::uint32_t, 4> values = {vocabulary, options.do_lower_case ? 1U : 0U,
                                               options.strip_accents.value_or(options.do_lower_case) ? 1U : 0U,
                                               options.tokenize_chinese_chars ? 1U : 0U};
  return crc32c(std::as_bytes(std::span(values)));
}

Vocabulary Vocabulary::load(const FileReader& files, const std::filesystem::path& path) {
  const std::string text = read_text_file(files, path);
  std::vector<std::string_view> lines = split_lines(text);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return {std::vector<std::string>(lines.begin(), lines.end()), path.string()};
}

Vocabulary::Vocabulary(std::vector<std::string> tokens, std::string_view name)
    : tokens_(std::move(tokens)),
      trie_(tokens_, distinct_ids(tokens_, name)),
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
