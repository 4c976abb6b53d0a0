#include <fmt/format.h>

#include <vector>

#include "core/base/text/printable.hpp"
#include "core/base/text/unicode.hpp"
#include "data/tokenizer/json/models.hpp"
#include "data/tokenizer/json/stage_table.hpp"

namespace mylos::data {

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

}  // namespace mylos::data
