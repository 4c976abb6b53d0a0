#include "data/huggingface/model_families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/printable.hpp"
#include "data/huggingface/bert_config.hpp"
#include "data/huggingface/bert_tensors.hpp"
#include "data/huggingface/image_processor.hpp"
#include "data/huggingface/llama_config.hpp"
#include "data/huggingface/llama_tensors.hpp"
#include "data/huggingface/model_type.hpp"
#include "data/huggingface/resnet_config.hpp"
#include "data/huggingface/resnet_tensors.hpp"
#include "data/huggingface/sentencepiece_files.hpp"
#include "data/huggingface/weight_files.hpp"
#include "data/huggingface/wordpiece_files.hpp"

namespace mylos::data {
namespace {

using std::filesystem::path;

constexpr std::array<std::string_view, 1> bert_needs{"vocab.txt"};
constexpr std::array<std::string_view, 1> bert_may_have{"tokenizer_config.json"};
constexpr std::array<std::string_view, 1> resnet_may_have{image_processor_file};

void check_weights(const path& directory, const TensorNaming& naming) {
  WeightFiles(directory, naming.canonical).check_unnamed(naming);
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
  read_image_processor(directory);
  check_weights(directory, resnet_tensor_naming(true));
}

constexpr std::array families{
    ModelFamily{"bert", "a BERT model", bert_needs, bert_may_have, [](const path& file) { read_bert_config(file); },
                check_bert},
    ModelFamily{
        "llama", "a Llama", {}, sentencepiece_files, [](const path& file) { read_llama_config(file); }, check_llama},
    ModelFamily{
        "resnet", "a ResNet", {}, resnet_may_have, [](const path& file) { read_resnet_config(file); }, check_resnet}};

}  // namespace

const ModelFamily& find_model_family(const path& directory) {
  const std::string type = model_type_of(directory);
  const auto* const found = std::ranges::find(families, type, &ModelFamily::model_type);
  if (found != families.end()) return *found;
  fail(fmt::format("{}: model_type is \"{}\"; only \"bert\", \"llama\" and \"resnet\" are supported",
                   (directory / "config.json").string(), printable(type)));
}

}  // namespace mylos::data
