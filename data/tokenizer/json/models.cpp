#include "data/tokenizer/json/models.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "core/base/text/printable.hpp"
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
