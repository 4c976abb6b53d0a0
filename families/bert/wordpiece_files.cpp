#include "families/bert/wordpiece_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/python_json.hpp"
#include "data/tokenizer/json/model_lists.hpp"
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

std::filesystem::path vocabulary_path(const std::filesystem::path& directory) {
  auto path = directory / vocabulary_file;
  ensure(is_present(path), fmt::format("{} has no vocab.txt", directory.string()));
  return path;
}

/// Returns whether tokenizer.json has a token with another id than in vocab.txt, among its vocabulary or those added.
bool has_other_tokens(const FileReader& files, const std::filesystem::path& directory,
                      const data::Vocabulary& vocabulary) {
  const auto file = directory / fast_tokenizer_file;
  const data::TokenizerJson read = data::parse_tokenizer_json(files.read_text(file), file.string());
  const data::ModelLists& lists = read.lists;
  const JsonLocation location(file.native());
  const JsonLocation within(location, "added_tokens");
  const Json* added = find_member(read.json, "added_tokens", location);
  for (std::size_t i = 0; added != nullptr && i < added->size(); ++i) {
    const JsonLocation element(within, i);
    const Json& token = as_list(*added, within)[i];
    const std::size_t id = count_member(token, "id", element);
    const std::string& content = string_member(token, "content", element);
    if (id >= vocabulary.size() || vocabulary.token(static_cast<data::TokenId>(id)) != content) return true;
  }
  return std::any_of(lists.tokens.begin(), lists.tokens.end(), [&](const data::ModelLists::Token& token) {
    const auto size = static_cast<double>(vocabulary.size());
    const bool is_id = lists.has_ids && token.number >= 0 && token.number < size;
    return !is_id || vocabulary.token(static_cast<data::TokenId>(token.number)) != lists.view(token.entry);
  });
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
  WordPieceFiles read{.vocabulary = {}, .tokenizer_json = {}, .options = read_tokenizer_options(files, directory)};
  read.vocabulary = files.read_text(vocabulary_path(directory));
  const auto json = directory / "tokenizer.json";
  if (is_present(json)) read.tokenizer_json = files.read_text(json);
  return read;
}

std::vector<data::ModelFile> wordpiece_model_files(const WordPieceFiles& files, std::size_t longest_input) {
  std::vector<data::ModelFile> written = {
      {"vocab.txt", files.vocabulary},
      {"special_tokens_map.json", data::model_json_text(special_token_names())},
      {"tokenizer_config.json", data::model_json_text(tokenizer_config(files.options, longest_input))}};
  if (!files.tokenizer_json.empty()) written.push_back({"tokenizer.json", files.tokenizer_json});
  return written;
}

void check_vocabulary_size(std::size_t vocab_size, std::size_t tokens, const std::filesystem::path& file) {
  const bool is_padded = vocab_size % padding_multiple == 0 && tokens + largest_padding > vocab_size;
  if (tokens == vocab_size || (tokens < vocab_size && is_padded)) return;
  fail(fmt::format(
      "{} has {} tokens, config.json says vocab_size = {}: it is the vocabulary of another model, or incomplete",
      file.string(), tokens, vocab_size));
}

data::Vocabulary load_vocabulary(const FileReader& files, const std::filesystem::path& directory,
                                 std::size_t vocab_size) {
  const auto path = vocabulary_path(directory);
  data::Vocabulary vocabulary = data::Vocabulary::load(files, path);
  check_vocabulary_size(vocab_size, vocabulary.size(), path);
  return vocabulary;
}

std::unique_ptr<data::Tokenizer> load_wordpiece(const FileReader& files, const std::filesystem::path& directory) {
  const BertShape config = read_bert_config({files, directory / "config.json"});
  data::TokenizerOptions options = read_tokenizer_options(files, directory);
  data::Vocabulary vocabulary = load_vocabulary(files, directory, config.vocabulary);
  if (reads_fast_tokenizer(files, directory, vocabulary_file) && has_other_tokens(files, directory, vocabulary)) {
    return load_fast_tokenizer(files, directory, config.vocabulary);
  }
  return std::make_unique<data::WordPieceTokenizer>(std::move(vocabulary), options);
}

std::vector<data::ModelFile> wordpiece_model_files(const FileReader& files, const data::PretrainedModel& model) {
  return wordpiece_model_files(read_wordpiece_files(files, model.directory()), read_bert_config(model).positions);
}

}  // namespace mylos::families
