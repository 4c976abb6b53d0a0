#include "data/tokenizer/json/tokenizer_config.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/options/option_values.hpp"
#include "data/tokenizer/json/stage_table.hpp"

namespace mylos::data {
namespace {

/// Reads `added_tokens_decoder`: tokens by their ids, as in `added_tokens` of a tokenizer.json.
std::map<std::uint64_t, Json> read_added_tokens(const Json& config, const JsonLocation& location) {
  std::map<std::uint64_t, Json> tokens;
  const Json* const decoder = find_member(config, "added_tokens_decoder", location);
  if (decoder == nullptr || decoder->is_null()) return tokens;
  const JsonLocation within(location, "added_tokens_decoder");
  for (const auto& item : as_object(*decoder, within).items()) {
    const JsonLocation place(within, item.key());
    const auto id = parse_count(item.key(), {0, 0x7FFFFFFF});
    if (!id) place.fail("is no id");
    string_member(item.value(), "content", place);
    Json& token = tokens[*id] = item.value();
    token.erase("__type");
    token["id"] = *id;
  }
  return tokens;
}

/// Adds tokens. One with the text of a token that is there replaces it, with the same id.
void add_tokens(std::map<std::uint64_t, Json> tokens, Json& tokenizer) {
  if (tokens.empty()) return;
  Json& added = tokenizer["added_tokens"];
  for (auto& entry : tokens) {
    Json& token = entry.second;
    const auto same = std::ranges::find_if(added, [&](const Json& other) {
      return other.is_object() && other.value("content", Json()) == token["content"];
    });
    if (same == added.end()) {
      added.push_back(std::move(token));
    } else {
      token["id"] = same->value("id", Json());
      *same = std::move(token);
    }
  }
}

/// Makes the tokens special that the configuration names for a purpose.
void mark_special(const Json& config, Json& tokenizer) {
  std::set<Json> named;
  const auto name = [&](const Json& token) {
    named.insert(token.is_object() ? token.value("content", Json()) : token);
  };
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    name(config.value(key, Json()));
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {  // a list, or an object of names
    const Json tokens = config.value(key, Json());
    if (tokens.is_structured()) std::ranges::for_each(tokens, name);
  }
  const auto added = tokenizer.find("added_tokens");
  if (added == tokenizer.end()) return;
  for (Json& token : *added) {
    if (token.is_object() && named.contains(token.value("content", Json()))) token["special"] = true;
  }
}

/// Returns a stage if it has this type, or null.
Json* find_stage(Json& tokenizer, const char* key, std::string_view type) {
  const auto stage = tokenizer.find(key);
  const bool is_found = stage != tokenizer.end() && stage->is_object() && stage->value("type", Json()) == type;
  return is_found ? &*stage : nullptr;
}

}  // namespace

std::string tokenizer_class(const Json& config, const JsonLocation& location) {
  std::string name = string_or(config, "tokenizer_class", "", location);
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

void apply_tokenizer_config(const Json& config, const JsonLocation& location, Json& tokenizer) {
  const std::string name = tokenizer_class(config, location);
  add_tokens(read_added_tokens(config, location), tokenizer);
  mark_special(config, tokenizer);
  Json* const bytes = find_stage(tokenizer, "pre_tokenizer", "ByteLevel");
  if (bytes != nullptr && !name.ends_with("LlamaTokenizer")) {
    (*bytes)["add_prefix_space"] = bool_or(config, "add_prefix_space", false, location);
  }
  Json* const bert = find_stage(tokenizer, "normalizer", "BertNormalizer");
  if (bert == nullptr || (name != "BertTokenizer" && name != "DistilBertTokenizer" && name != "ElectraTokenizer"))
    return;
  (*bert)["lowercase"] = bool_or(config, "do_lower_case", true, location);
  (*bert)["strip_accents"] = config.value("strip_accents", Json());
  (*bert)["handle_chinese_chars"] = bool_or(config, "tokenize_chinese_chars", true, location);
}

}  // namespace mylos::data
