#include "families/bert/wordpiece_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/python_json.hpp"
#include "data/tokenizer/json/models.hpp"
#include "data/tokenizer/json/post_processors.hpp"
#include "families/bert/bert_config.hpp"
#include "families/interface/fast_tokenizer.hpp"

namespace mylos::families {
namespace {

/// Tables padded to a multiple of 8, 64 or 128 rows for tensor cores have fewer unused rows than this.
constexpr std::size_t largest_padding = 128;
constexpr std::size_t padding_multiple = 8;

/// Reads the option `key` of tokenizer_config.json. nullopt if it is absent or null.
std::optional<bool> read_switch(const Json& json, const char* key, const std::string& file) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return std::nullopt;
  if (!found->is_boolean()) fail(fmt::format("{}: {} = {} is not true or false", file, key, printable(found->dump())));
  return found->get<bool>();
}

/// Throws unless the tokenizer class splits text exactly as BERT's does, with the same vocab.txt.
void check_tokenizer_class(const Json& json, const std::string& file) {
  const auto found = json.find("tokenizer_class");
  if (found == json.end() || found->is_null()) return;
  auto name = plain_text(*found);
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  for (const auto* known : {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"}) {
    if (name == known) return;
  }
  fail(fmt::format("{}: tokenizer_class {} is not supported; only BertTokenizer is", file, printable(name)));
}

/// Returns whether a tokenizer.json has BERT's stages, apart from what tokenizer_config.json says.
bool has_bert_stages(const Json& json, const JsonLocation& location) {
  static const Json stages = {{"normalizer", {{"type", "BertNormalizer"}, {"clean_text", true}}},
                              {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                              {"model",
                               {{"type", "WordPiece"},
                                {"unk_token", "[UNK]"},
                                {"continuing_subword_prefix", "##"},
                                {"max_input_chars_per_word", 100}}}};
  for (const auto& [stage, expected] : stages.items()) {
    const Json* const found = find_member(json, stage, location);
    if (found == nullptr || !found->is_object()) return false;
    Json fields = *found;
    for (const char* other : {"lowercase", "strip_accents", "handle_chinese_chars", "vocab"}) fields.erase(other);
    if (fields != expected) return false;
  }
  return true;
}

/// Returns whether a tokenizer.json adds no tokens but BERT's special ones, and lays out pairs as BERT does.
bool has_special_tokens_of(const data::Tokenizer& bert, const Json& json, const JsonLocation& location) {
  const JsonLocation processor(location, "post_processor"), tokens(location, "added_tokens");
  const auto pair = data::read_post_processor(json.value("post_processor", Json()), processor).pair;
  if (pair && !data::has_layout(*pair, bert.pair_layout())) return false;
  const Json added = json.value("added_tokens", Json::array());
  return std::ranges::all_of(as_list(added, tokens), [&](const Json& token) {
    using enum data::SpecialToken;
    return std::ranges::any_of(std::array{first, separator, padding, mask, unknown}, [&](data::SpecialToken role) {
      const std::optional<data::TokenId> id = bert.special(role);
      return id &&
             token == Json{{"id", *id},       {"content", bert.token(*id)}, {"single_word", false}, {"lstrip", false},
                           {"rstrip", false}, {"normalized", false},        {"special", true}};
    });
  });
}

/// Returns BERT's tokenizer, made of the tokens of a tokenizer.json; null if the file describes another.
std::unique_ptr<data::Tokenizer> read_bert_json(const FileReader& files, const std::filesystem::path& file,
                                                const data::TokenizerOptions& options) {
  const JsonLocation location(file.native());
  const JsonLocation model(location, "model");
  const data::TokenizerJson read = data::parse_tokenizer_json(files.read_text(file), file.string());
  if (!has_bert_stages(read.json, location)) return nullptr;
  const data::TokenTable table = data::read_tokens(read.lists, model);
  std::vector<std::string> tokens;
  for (std::size_t id = 0; id < table.size(); ++id) tokens.emplace_back(table.token(static_cast<data::TokenId>(id)));
  auto bert = std::make_unique<data::WordPieceTokenizer>(data::Vocabulary(std::move(tokens), file.string()), options);
  return has_special_tokens_of(*bert, read.json, location) ? std::move(bert) : nullptr;
}

OrderedJson special_token_names() {
  return {{"unk_token", "[UNK]"},
          {"sep_token", "[SEP]"},
          {"pad_token", "[PAD]"},
          {"cls_token", "[CLS]"},
          {"mask_token", "[MASK]"}};
}

OrderedJson tokenizer_config(const data::TokenizerOptions& options, std::size_t longest_input) {
  auto json = special_token_names();
  json["do_lower_case"] = options.do_lower_case;
  json["strip_accents"] = options.strip_accents ? OrderedJson(*options.strip_accents) : OrderedJson(nullptr);
  json["tokenize_chinese_chars"] = options.tokenize_chinese_chars;
  json["model_max_length"] = longest_input;
  json["tokenizer_class"] = "BertTokenizer";
  return json;
}

}  // namespace

data::TokenizerOptions read_tokenizer_options(const FileReader& files, const std::filesystem::path& directory) {
  const auto path = directory / "tokenizer_config.json";
  data::TokenizerOptions options;
  if (!is_present(path)) return options;  // the original releases have none, and are uncased
  const auto file = path.string();
  const auto json = read_json(files, path);
  ensure(json.is_object(), fmt::format("{}: not a JSON object", file));
  check_tokenizer_class(json, file);
  ensure(read_switch(json, "do_basic_tokenize", file).value_or(true),
         fmt::format("{}: do_basic_tokenize = false is not supported; only true is", file));
  options.do_lower_case = read_switch(json, "do_lower_case", file).value_or(true);
  options.strip_accents = read_switch(json, "strip_accents", file);
  options.tokenize_chinese_chars = read_switch(json, "tokenize_chinese_chars", file).value_or(true);
  return options;
}

WordPieceFiles read_wordpiece_files(const FileReader& files, const std::filesystem::path& directory) {
  const auto text_of = [&](std::string_view name) {
    return is_present(directory / name) ? files.read_text(directory / name) : std::string();
  };
  return {text_of(vocabulary_file), text_of(fast_tokenizer_file), read_tokenizer_options(files, directory)};
}

std::vector<data::ModelFile> wordpiece_model_files(const WordPieceFiles& files, std::size_t longest_input) {
  std::vector<data::ModelFile> written = {
      {std::string(vocabulary_file), files.vocabulary},
      {"special_tokens_map.json", data::model_json_text(special_token_names())},
      {"tokenizer_config.json", data::model_json_text(tokenizer_config(files.options, longest_input))},
      {std::string(fast_tokenizer_file), files.tokenizer_json}};
  std::erase_if(written, [](const data::ModelFile& file) { return file.bytes.empty(); });
  return written;
}

void check_vocabulary_size(std::size_t vocab_size, std::size_t tokens, const std::filesystem::path& file) {
  const bool is_padded = vocab_size % padding_multiple == 0 && tokens + largest_padding > vocab_size;
  if (tokens == vocab_size || (tokens < vocab_size && is_padded)) return;
  fail(fmt::format(
      "{} has {} tokens, config.json says vocab_size = {}: it is the vocabulary of another model, or incomplete",
      file.string(), tokens, vocab_size));
}

std::unique_ptr<data::Tokenizer> load_wordpiece(const FileReader& files, const std::filesystem::path& directory) {
  const std::size_t vocab_size = read_bert_config({files, directory / "config.json"}).vocabulary;
  const data::TokenizerOptions options = read_tokenizer_options(files, directory);
  std::filesystem::path file = directory / vocabulary_file;
  std::unique_ptr<data::Tokenizer> tokenizer;
  if (reads_fast_tokenizer(files, directory, vocabulary_file)) {
    file = directory / fast_tokenizer_file;
    tokenizer = read_bert_json(files, file, options);
    if (tokenizer == nullptr) return load_fast_tokenizer(files, directory, vocab_size);
  } else {
    ensure(is_present(file),
           fmt::format("{} has neither {} nor {}", directory.string(), vocabulary_file, fast_tokenizer_file));
    tokenizer = std::make_unique<data::WordPieceTokenizer>(data::Vocabulary::load(files, file), options);
  }
  check_vocabulary_size(vocab_size, tokenizer->size(), file);
  return tokenizer;
}

std::vector<data::ModelFile> wordpiece_model_files(const FileReader& files, const data::PretrainedModel& model) {
  return wordpiece_model_files(read_wordpiece_files(files, model.directory()), read_bert_config(model).positions);
}

}  // namespace mylos::families
