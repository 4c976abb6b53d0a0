#include "data/tokenizer/json/json_tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/text/printable.hpp"
#include "data/tokenizer/json/byte_characters.hpp"
#include "data/tokenizer/json/stage_table.hpp"
#include "data/tokenizer/json/tokenizer_config.hpp"

namespace mylos::data {
namespace {

/// The keys of tokenizer_config.json and the roles of their tokens. A later one replaces an earlier one.
struct RoleKey {
  std::string_view key;
  SpecialToken role;
};
constexpr std::array role_keys = {
    RoleKey{"bos_token", SpecialToken::first},     RoleKey{"cls_token", SpecialToken::first},
    RoleKey{"sep_token", SpecialToken::separator}, RoleKey{"pad_token", SpecialToken::padding},
    RoleKey{"mask_token", SpecialToken::mask},     RoleKey{"unk_token", SpecialToken::unknown},
    RoleKey{"eos_token", SpecialToken::end}};

constexpr std::string_view file_fields =
    "version truncation padding added_tokens normalizer pre_tokenizer post_processor decoder model";

const Json& field(const Json& json, const char* key) {
  static const Json absent;
  const auto found = json.find(key);
  return found == json.end() ? absent : *found;
}

void check_file(const Json& json, const JsonLocation& location) {
  check_fields(json, file_fields, location);
  if (!json.contains("version")) return;
  const std::string& version = string_member(json, "version", location);
  if (version == "1.0") return;
  JsonLocation(location, "version").fail(fmt::format("{} is not supported; only 1.0 is", printable(version)));
}

/// Throws for an id of a special token that no token has, with the place of the id.
[[noreturn]] void fail_special(const Json& processor, TokenId id, const JsonLocation& location) {
  std::string place;
  const Json places = processor.flatten();  // "/special_tokens/<s>/ids/0": 50
  for (const auto& item : places.items()) place = item.value() == id ? item.key() : place;
  JsonLocation(location, "post_processor").fail(fmt::format("{}: no token has the id {}", printable(place), id));
}

/// Returns the token that the configuration has at `key`; empty if it has none.
std::string token_at(const Json& config, std::string_view key, const JsonLocation& location) {
  const Json* value = find_member(config, key, location);
  const JsonLocation within(location, key);
  if (value == nullptr || value->is_null()) return "";
  return value->is_object() ? string_member(*value, "content", within) : as_string(*value, within);
}

}  // namespace

JsonTokenizer JsonTokenizer::load(const FileReader& files, const std::filesystem::path& path) {
  std::string text = read_text_file(files, path);
  const std::filesystem::path config = path.parent_path() / "tokenizer_config.json";
  if (!is_present(config)) return {text, path.native()};
  const Json json = read_json(files, config);
  const JsonLocation location(config.native());
  TokenizerJson read = parse_tokenizer_json(text, path.native());
  const Json in_file = read.json;
  apply_tokenizer_config(json, location, read.json);
  if (read.json != in_file) text += read.json.dump();  // for the checksum
  JsonTokenizer tokenizer(read, text, JsonLocation(path.native()));
  tokenizer.read_roles(json, location);
  tokenizer.read_added_around(json, location);
  return tokenizer;
}

JsonTokenizer::JsonTokenizer(std::string_view text, std::string_view file)
    : JsonTokenizer(parse_tokenizer_json(text, file), text, JsonLocation(file)) {}

JsonTokenizer::JsonTokenizer(const TokenizerJson& read, std::string_view text, const JsonLocation& location)
    : file_(location.text()),
      table_((check_file(read.json, location), read_tokens(read.lists, JsonLocation(location, "model")))),
      normalizer_(read_normalizer(field(read.json, "normalizer"), JsonLocation(location, "normalizer"))),
      added_(field(read.json, "added_tokens"), JsonLocation(location, "added_tokens"), table_, normalizer_),
      pre_tokenizer_(read_pre_tokenizer(field(read.json, "pre_tokenizer"), JsonLocation(location, "pre_tokenizer"))),
      model_(read_model(member(read.json, "model", location), JsonLocation(location, "model"), read.lists, table_)),
      processor_(read_post_processor(field(read.json, "post_processor"), JsonLocation(location, "post_processor"))),
      decoder_(read_decoder(field(read.json, "decoder"), JsonLocation(location, "decoder"))),
      identity_{added_.size(), crc32c(std::as_bytes(std::span(text)))} {
  const JsonLocation model(location, "model");
  if (std::holds_alternative<WordPieceModel>(model_)) {
    continuation_ = string_or(read.json["model"], "continuing_subword_prefix", "##", model);
  }
  const Json& decoder = field(read.json, "decoder");
  writes_bytes_ = decoder.is_object() && decoder.value("type", "") == "ByteLevel";
  const TokenId unknown = std::visit([](const auto& m) { return m.unknown(); }, model_);
  if (unknown >= 0) roles_[static_cast<std::size_t>(SpecialToken::unknown)] = unknown;
  for (const auto* parts : {&processor_.single, &processor_.pair}) {
    if (!*parts) continue;
    for (const TemplatePart& part : **parts) {
      for (const TokenId id : part.ids) {
        if (static_cast<std::size_t>(id) >= identity_.size) fail_special(read.json["post_processor"], id, location);
      }
    }
  }
  if (!processor_.single || processor_.single->empty()) return;
  const Template& single = *processor_.single;
  if (single.front().ids.size() == 1) roles_[static_cast<std::size_t>(SpecialToken::first)] = single.front().ids[0];
  if (single.size() > 1 && single.back().ids.size() == 1) {
    roles_[static_cast<std::size_t>(SpecialToken::separator)] = single.back().ids[0];
  }
}

void JsonTokenizer::read_roles(const Json& config, const JsonLocation& location) {
  for (const RoleKey& key : role_keys) {
    const std::string name = token_at(config, key.key, location);
    if (name.empty()) continue;
    const std::optional<TokenId> id = find(name);
    const bool may_lack = key.role == SpecialToken::padding || key.role == SpecialToken::unknown;
    if (!id && may_lack) continue;  // rows are filled with any id, and nothing is unknown
    if (!id) JsonLocation(location, key.key).fail(fmt::format("{} has no token {}", file_, printable(name)));
    roles_[static_cast<std::size_t>(key.role)] = id;
  }
}

/// Replaces the post-processor, as the classes of transformers do that add BOS and EOS themselves.
void JsonTokenizer::read_added_around(const Json& config, const JsonLocation& location) {
  const std::string name = tokenizer_class(config, location);
  struct Class {
    std::string_view name;
    const char *bos, *eos;  // unless the configuration names others
    bool adds_bos = true;
  };
  constexpr std::array classes = {Class{"LlamaTokenizer", "<s>", "</s>"}, Class{"CodeLlamaTokenizer", "<s>", "</s>"},
                                  Class{"GemmaTokenizer", "<bos>", "<eos>"},
                                  Class{"CohereTokenizer", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>"},
                                  Class{"GPTNeoXTokenizer", "<|endoftext|>", "<|endoftext|>", false}};
  const auto* const found = std::ranges::find(classes, name, &Class::name);
  if (found == classes.end()) return;
  const auto added = [&](const char* option, bool is_default, const char* key, const char* absent) -> Template {
    if (!bool_or(config, option, is_default, location)) return {};
    const std::string token = token_at(config, key, location);
    const std::optional<TokenId> id = find(token.empty() ? absent : token);
    if (!id) JsonLocation(location, option).fail(fmt::format("true, but there is no such token in {}", file_));
    return {{.ids = {*id}}};
  };
  Template single = added("add_bos_token", found->adds_bos, "bos_token", found->bos);
  const Template end = added("add_eos_token", false, "eos_token", found->eos);
  single.emplace_back();
  single.insert(single.end(), end.begin(), end.end());
  processor_ = {.single = std::move(single)};
}

void JsonTokenizer::tokenize(std::string_view text, Tokens& tokens) const {
  const Tokens found = tokens_of(text, processor_.trims);
  tokens.ids.insert(tokens.ids.end(), found.ids.begin(), found.ids.end());
  tokens.offsets.insert(tokens.offsets.end(), found.offsets.begin(), found.offsets.end());
}

Tokens JsonTokenizer::tokens_of(std::string_view text, std::span<const OffsetTrim> trims) const {
  ensure_utf8(text, "the text to tokenize");
  PiecedText pieced;
  const auto split = [&](PiecedText& pieces) { pieces = added_.split(text, normalizer_); };
  bounded<PiecedText>(split, file_ + ": normalizer")(pieced);
  pre_tokenizer_(pieced);
  std::vector<std::string_view> texts;
  Tokens found;
  append_tokens(pieced, found, trims.empty() ? nullptr : &texts);
  for (const OffsetTrim& trim : trims) trim_offsets(trim, texts, found);
  return found;
}

/// Appends the tokens of the pieces; to `texts`, unless null, the text of each, which for what a Unigram does not know
/// is that of the piece.
void JsonTokenizer::append_tokens(const PiecedText& text, Tokens& tokens, std::vector<std::string_view>* texts) const {
  std::vector<WordToken> word;
  const auto* const unigram = std::get_if<UnigramModel>(&model_);
  for (const Piece& piece : text.pieces) {
    word.clear();
    if (piece.id >= 0) {
      word.push_back({piece.id, 0, piece.end - piece.begin});
    } else {
      std::visit([&](const auto& model) { model.tokenize(text.view(piece), table_, word); }, model_);
    }
    for (const WordToken& token : word) {
      const Piece part{piece.begin + token.begin, piece.begin + token.end, token.id};
      tokens.ids.push_back(token.id);
      tokens.offsets.push_back(text.range(part.begin, part.end));
      const bool is_unknown = unigram != nullptr && token.id == unigram->unknown();
      if (texts != nullptr) texts->push_back(piece.id >= 0 || is_unknown ? text.view(part) : text_of(token.id));
    }
  }
}

Tokens JsonTokenizer::with_special(std::string_view text) const {
  Tokens plain = tokenize(text);
  if (!processor_.single) return plain;
  Tokens all;
  for (const TemplatePart& part : *processor_.single) {
    const std::vector<TokenId>& ids = part.ids.empty() ? plain.ids : part.ids;
    all.ids.insert(all.ids.end(), ids.begin(), ids.end());
    if (part.ids.empty()) all.offsets.insert(all.offsets.end(), plain.offsets.begin(), plain.offsets.end());
    all.offsets.resize(all.ids.size());
  }
  return all;
}

std::string JsonTokenizer::text_of(std::span<const TokenId> ids, bool leaves_out_special) const {
  std::vector<std::string> tokens;
  for (const TokenId id : ids) {
    std::string name = token(id);
    if (!leaves_out_special || !added_.is_special(id)) tokens.push_back(std::move(name));
  }
  decoder_(tokens);
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

std::string_view JsonTokenizer::text_of(TokenId id) const {
  const std::string* added = added_.token(id);
  return added == nullptr ? table_.token(id) : *added;
}

std::string JsonTokenizer::token(TokenId id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= size()) {
    fail(fmt::format("id {} is outside the tokenizer's {} tokens", id, size()));
  }
  return std::string(text_of(id));
}

bool JsonTokenizer::continues_word(TokenId id) const {
  const std::string name = token(id);
  if (!continuation_.empty()) return name.starts_with(continuation_);
  return added_.token(id) == nullptr && !name.starts_with("\xE2\x96\x81") && !name.starts_with("\xC4\xA0");
}

std::string JsonTokenizer::bytes(TokenId id) const {
  const std::string name = token(id);
  std::string bytes;
  if (writes_bytes_) {
    append_token_bytes(name, bytes);
  } else if (const auto byte = byte_of_name(name)) {
    bytes.push_back(static_cast<char>(*byte));
  }
  return bytes;
}

std::optional<TokenId> JsonTokenizer::first_token(std::optional<TokenId>) const {
  if (!processor_.single) return std::nullopt;
  std::vector<TokenId> before;
  for (const TemplatePart& part : *processor_.single) {
    if (part.ids.empty()) break;
    before.insert(before.end(), part.ids.begin(), part.ids.end());
  }
  ensure(before.size() <= 1, fmt::format("{}: post_processor: {} tokens before a text are not supported; only one is",
                                         file_, before.size()));
  return before.empty() ? std::nullopt : std::optional(before.front());
}

std::optional<TokenId> JsonTokenizer::special(SpecialToken role) const {
  return roles_[static_cast<std::size_t>(role)];
}

PairLayout JsonTokenizer::pair_layout() const {
  PairLayout layout = Tokenizer::pair_layout();
  if (!processor_.pair || has_layout(*processor_.pair, layout)) return layout;
  layout.separators = 2;  // as RoBERTa
  layout.second_type = 0;
  if (has_layout(*processor_.pair, layout)) return layout;
  fail(fmt::format("{}: post_processor: it lays out pairs in a way that is not supported", file_));
}

std::optional<TokenId> JsonTokenizer::find(std::string_view token) const {
  const TokenId added = added_.find(token);
  const TokenId id = added >= 0 ? added : table_.find(token);
  return id >= 0 ? std::optional(id) : std::nullopt;
}

}  // namespace mylos::data
