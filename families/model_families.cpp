#include "families/model_families.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/usage_error.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/image_processor.hpp"
#include "data/huggingface/model_type.hpp"
#include "data/huggingface/pretrained.hpp"
#include "data/huggingface/weight_files.hpp"
#include "data/tokenizer/json/wordpiece.hpp"
#include "families/bert/bert_config.hpp"
#include "families/bert/bert_model.hpp"
#include "families/bert/wordpiece_files.hpp"
#include "families/interface/fast_tokenizer.hpp"
#include "families/llama/known_llamas.hpp"
#include "families/llama/llama_config.hpp"
#include "families/llama/llama_model.hpp"
#include "families/llama/sentencepiece_files.hpp"
#include "families/resnet/resnet_config.hpp"
#include "families/resnet/resnet_model.hpp"

namespace mylos::families {
namespace {

using std::filesystem::path;

/// A row of the table of families.
struct Family : data::ModelFamily {
  BodyOutput output;  ///< of its body
  /// Return the model that a configuration describes. Null if it is not of texts, or not of images.
  TextModel (*text_model)(const data::ModelConfig& config, std::optional<double> dropout) = nullptr;
  std::unique_ptr<ImageModel> (*image_model)(const data::ModelConfig& config) = nullptr;
};

constexpr std::array<std::string_view, 3> bert_may_have{vocabulary_file, fast_tokenizer_file, "tokenizer_config.json"};
constexpr std::array<std::string_view, 1> resnet_may_have{data::image_processor_file};

void check_weights(const path& directory, const data::TensorNaming& naming) {
  data::WeightFiles(FileReader(), directory, naming.canonical).check_unnamed(naming);
}

void check_bert(const path& directory) {
  load_wordpiece(FileReader(), directory);
  check_weights(directory, bert_tensor_naming());
}

void check_llama(const path& directory) {
  load_llama_tokenizer(FileReader(), directory);
  check_weights(directory, llama_tensor_naming(read_llama_config({FileReader(), directory / "config.json"}).tied));
}

void check_resnet(const path& directory) {
  read_resnet_config({FileReader(), directory / "config.json"});
  data::read_image_processor(FileReader(), directory);
  check_weights(directory, resnet_tensor_naming(true));
}

/// Returns the row of a member of the Llama family; the first has the known sizes of all.
constexpr Family llama_family(const LlamaMember& member, std::span<const data::KnownModel> known = {}) {
  return {
      data::ModelFamily{
          .model_type = member.model_type,
          .model = member.model,
          .known = known,
          .optional = sentencepiece_files,
          .check_config =
              [](const path& file) {
                read_llama_config({FileReader(), file});
              },
          .check = check_llama,
          .tokenizer = load_llama_tokenizer,
          .tokenizer_file = sentencepiece_file,
          .architecture = member.architecture,
          .config_json = [](const data::PretrainedModel& model) { return llama_config_json(read_llama_config(model)); },
          .tokenizer_files =
              [](const FileReader& files, const data::PretrainedModel& model) {
                return model.read_files(files, sentencepiece_files);
              }},
      BodyOutput::next_tokens, llama_model};
}

static_assert(llama_members.size() == 4, "each has a row below");

constexpr std::array families{
    Family{
        data::ModelFamily{
            .model_type = "bert",
            .model = "a BERT model",
            .known = known_berts,
            .optional = bert_may_have,
            .check_config =
                [](const path& file) {
                  read_bert_config({FileReader(), file});
                },
            .check = check_bert,
            .tokenizer = load_wordpiece,
            .tokenizer_file = vocabulary_file,
            .architecture = "Bert",
            .config_json = [](const data::PretrainedModel& model) { return bert_config_json(read_bert_config(model)); },
            .tokenizer_files = wordpiece_model_files},
        BodyOutput::tokens, bert_model},
    llama_family(llama_members[0], known_llamas),
    llama_family(llama_members[1]),
    llama_family(llama_members[2]),
    llama_family(llama_members[3]),
    Family{data::ModelFamily{.model_type = "resnet",
                             .model = "a ResNet",
                             .known = known_resnets,
                             .optional = resnet_may_have,
                             .check_config =
                                 [](const path& file) {
                                   read_resnet_config({FileReader(), file});
                                 },
                             .check = check_resnet,
                             .tokenizer = nullptr,
                             .tokenizer_file = {},
                             .architecture = "ResNet",
                             .config_json = nullptr,
                             .tokenizer_files = nullptr},
           BodyOutput::images, nullptr, resnet_model}};

[[noreturn]] void fail_unsupported(const Json& config, const std::string& file, std::string_view type) {
  std::vector<std::string_view> types;
  for (const Family& family : families) types.push_back(family.model_type);
  fail(fmt::format("{}: model_type is \"{}\"{}; the supported model types are {}", file, printable(type),
                   data::architecture_text(config), fmt::join(types, ", ")));
}

}  // namespace

const data::ModelFamily& find_model_family(const FileReader& files, const path& directory) {
  const path file = directory / "config.json";
  const Json config = read_json(files, file);
  const std::string type = data::model_type_of(config, file.string());
  const auto* const found = std::ranges::find(families, type, &data::ModelFamily::model_type);
  if (found != families.end()) return *found;
  fail_unsupported(config, file.string(), type);
}

std::vector<std::string_view> types_that_give(BodyOutput output) {
  std::vector<std::string_view> types;
  for (const Family& family : families) {
    if (family.output == output) types.push_back(family.model_type);
  }
  return types;
}

std::vector<std::string> known_models(BodyOutput output) {
  std::vector<std::string> names;
  for (const Family& family : families) {
    if (family.output != output) continue;
    for (const data::KnownModel& model : family.known) names.emplace_back(model.name);
  }
  return names;
}

const data::KnownModel* find_known_model(std::string_view name, std::optional<BodyOutput> output) {
  std::error_code unreadable;  // reported by the code that reads it
  if (std::filesystem::is_directory(name, unreadable)) return nullptr;
  for (const Family& family : families) {
    if (output && family.output != *output) continue;
    for (const data::KnownModel& model : family.known) {
      if (model.name == name || model.fetched == name) return &model;
    }
  }
  return nullptr;
}

namespace {

/// Returns the family of a configuration, which gives `output`.
const Family& find_family(const data::ModelConfig& config, BodyOutput output) {
  const std::string type = data::model_type_of(config.json, config.file);
  const auto* found = std::ranges::find(families, type, &data::ModelFamily::model_type);
  // Without a type, the reader of a family that gives the output tells what is missing.
  if (type.empty()) found = std::ranges::find(families, output, &Family::output);
  if (found == families.end()) fail_unsupported(config.json, config.file, type);
  if (found->output != output) {
    throw UsageError(fmt::format("{}: model_type is \"{}\", and a model of this task is one of: {}", config.file, type,
                                 fmt::join(types_that_give(output), ", ")));
  }
  const Json quantized = config.json.value("quantization_config", Json());
  ensure(quantized.is_null(),
         fmt::format("{}: quantization_config is not supported; use the model that is not quantized, "
                     "or remove the key if the weights are not",
                     config.file));
  return *found;
}

}  // namespace

TextModel read_text_model(const data::ModelConfig& config, BodyOutput output, std::optional<double> dropout) {
  return find_family(config, output).text_model(config, dropout);
}

std::unique_ptr<ImageModel> read_image_model(const data::ModelConfig& config) {
  return find_family(config, BodyOutput::images).image_model(config);
}

void check_model_family(const FileReader& files, const path& directory) {
  if (!data::model_type_of(files, directory).empty()) find_model_family(files, directory);
}

bool holds_only_tokenizer(const path& directory) {
  return is_present(directory / fast_tokenizer_file) && !is_present(directory / "config.json");
}

std::unique_ptr<data::Tokenizer> read_tokenizer(const FileReader& files, const path& directory) {
  if (holds_only_tokenizer(directory)) {
    return load_fast_tokenizer(files, directory, std::numeric_limits<std::size_t>::max());
  }
  const data::ModelFamily& family = find_model_family(files, directory);
  if (family.tokenizer == nullptr) {
    throw UsageError(fmt::format("{}: {} has no tokenizer", directory.string(), family.model));
  }
  std::unique_ptr<data::Tokenizer> tokenizer = family.tokenizer(files, directory);
  if (tokenizer == nullptr) fail_without_tokenizer(directory);
  return tokenizer;
}

void fail_without_tokenizer(const path& directory) {
  fail(fmt::format("{}: has no tokenizer ({} or {}), which is needed for texts; copy the model's there",
                   directory.string(), fast_tokenizer_file, find_model_family(FileReader(), directory).tokenizer_file));
}

void notice_tokenizer_choice(const FileReader& files, const path& directory, const Notice& notice) {
  if (holds_only_tokenizer(directory)) return;
  const std::string_view own = find_model_family(files, directory).tokenizer_file;
  if (own.empty() || !is_present(directory / own) || !is_present(directory / fast_tokenizer_file)) return;
  notice(fmt::format("{} has {} and {}: {} is read, as transformers does", directory.string(), own, fast_tokenizer_file,
                     reads_fast_tokenizer(files, directory, own) ? fast_tokenizer_file : own));
}

std::unique_ptr<data::Tokenizer> read_vocabulary(const path& file, bool lower_case) {
  return std::make_unique<data::WordPieceTokenizer>(
      data::Vocabulary::load(FileReader(), file),
      data::TokenizerOptions{.do_lower_case = lower_case, .strip_accents = {}});
}

}  // namespace mylos::families
