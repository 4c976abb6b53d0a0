#include "families/model_families.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/printable.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/image_processor.hpp"
#include "data/huggingface/model_type.hpp"
#include "data/huggingface/weight_files.hpp"
#include "families/bert/bert_config.hpp"
#include "families/bert/bert_tensors.hpp"
#include "families/bert/wordpiece_files.hpp"
#include "families/llama/llama_config.hpp"
#include "families/llama/llama_tensors.hpp"
#include "families/llama/sentencepiece_files.hpp"
#include "families/resnet/resnet_config.hpp"
#include "families/resnet/resnet_tensors.hpp"

namespace mylos::families {
namespace {

using std::filesystem::path;

constexpr std::array<std::string_view, 1> bert_needs{"vocab.txt"};
constexpr std::array<std::string_view, 1> bert_may_have{"tokenizer_config.json"};
constexpr std::array<std::string_view, 1> resnet_may_have{data::image_processor_file};

void check_weights(const path& directory, const data::TensorNaming& naming) {
  data::WeightFiles(directory, naming.canonical).check_unnamed(naming);
}

void check_bert(const path& directory) {
  const BertConfig config = read_bert_config(directory / "config.json");
  read_tokenizer_options(directory);
  load_vocabulary(directory, config.vocab_size);
  check_weights(directory, bert_tensor_naming());
}

void check_llama(const path& directory) {
  const LlamaConfig config = read_llama_config(directory / "config.json");
  load_sentencepiece(directory, config.vocab_size);
  check_weights(directory, llama_tensor_naming(config.tie_word_embeddings));
}

void check_resnet(const path& directory) {
  read_resnet_config(directory / "config.json");
  data::read_image_processor(directory);
  check_weights(directory, resnet_tensor_naming(true));
}

constexpr std::array families{
    data::ModelFamily{"bert", "a BERT model", bert_needs, bert_may_have,
                      [](const path& file) { read_bert_config(file); }, check_bert},
    data::ModelFamily{
        "llama", "a Llama", {}, sentencepiece_files, [](const path& file) { read_llama_config(file); }, check_llama},
    data::ModelFamily{
        "resnet", "a ResNet", {}, resnet_may_have, [](const path& file) { read_resnet_config(file); }, check_resnet}};

[[noreturn]] void fail_unsupported(const Json& config, const std::string& file, std::string_view type) {
  std::vector<std::string_view> types;
  for (const data::ModelFamily& family : families) types.push_back(family.model_type);
  fail(fmt::format("{}: model_type is \"{}\"{}; the supported model types are {}", file, printable(type),
                   data::architecture_text(config), fmt::join(types, ", ")));
}

}  // namespace

const data::ModelFamily& find_model_family(const path& directory) {
  const path file = directory / "config.json";
  const Json config = read_json(file);
  const std::string type = data::model_type_of(config, file.string());
  const auto* const found = std::ranges::find(families, type, &data::ModelFamily::model_type);
  if (found != families.end()) return *found;
  fail_unsupported(config, file.string(), type);
}

}  // namespace mylos::families
