#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/files.hpp"
#include "data/huggingface/pretrained.hpp"

namespace mylos::data {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson special_token_names() {
  return {{"unk_token", "[UNK]"},
          {"sep_token", "[SEP]"},
          {"pad_token", "[PAD]"},
          {"cls_token", "[CLS]"},
          {"mask_token", "[MASK]"}};
}

OrderedJson tokenizer_config(const TokenizerOptions& options, std::size_t longest_input) {
  auto json = special_token_names();
  json["do_lower_case"] = options.do_lower_case;
  json["strip_accents"] = options.strip_accents ? OrderedJson(*options.strip_accents) : OrderedJson(nullptr);
  json["tokenize_chinese_chars"] = options.tokenize_chinese_chars;
  json["model_max_length"] = longest_input;
  json["tokenizer_class"] = "BertTokenizer";
  return json;
}

void write_json(const std::filesystem::path& path, const OrderedJson& json) { write_text(path, json.dump(2) + "\n"); }

/// `directory`, cleared of what killed writers left beside it.
const std::filesystem::path& prepared(const std::filesystem::path& directory) {
  remove_abandoned(directory);
  return directory;
}

}  // namespace

PretrainedWriter::PretrainedWriter(const std::filesystem::path& directory, const BertConfig& config,
                                   const TokenizerFiles& tokenizer, std::span<const TensorShape> weights)
    : staged_(prepared(directory)), weights_(staged_.path() / "model.safetensors", weights) {
  write_text(staged_.path() / "config.json", bert_config_text(config));
  write_text(staged_.path() / "vocab.txt", tokenizer.vocabulary);
  write_json(staged_.path() / "special_tokens_map.json", special_token_names());
  write_json(staged_.path() / "tokenizer_config.json",
             tokenizer_config(tokenizer.options, config.max_position_embeddings));
  if (!tokenizer.tokenizer_json.empty()) write_text(staged_.path() / "tokenizer.json", tokenizer.tokenizer_json);
}

void PretrainedWriter::commit() {
  weights_.commit();
  staged_.commit();
}

void write_pretrained(const std::filesystem::path& directory, const BertConfig& config, const TokenizerFiles& tokenizer,
                      std::span<const NamedTensor> weights) {
  PretrainedWriter writer(directory, config, tokenizer, shapes_of(weights));
  for (const auto& tensor : weights) writer.write(tensor.values);
  writer.commit();
}

}  // namespace mylos::data
