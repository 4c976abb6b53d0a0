#include "data/huggingface/pretrained.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/base/printable.hpp"
#include "data/huggingface/weight_files.hpp"

namespace mylos::data {
namespace {

/// Tables padded to a multiple of 8, 64 or 128 rows for tensor cores lack fewer tokens than this.
constexpr std::size_t largest_padding = 128;
constexpr std::size_t padding_multiple = 8;
constexpr std::size_t most_names_listed = 8;

/// The switch `key` of tokenizer_config.json; nothing where it is absent or null.
std::optional<bool> read_switch(const Json& json, const char* key, const std::string& file) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return std::nullopt;
  if (!found->is_boolean()) fail(fmt::format("{}: {} = {} is not true or false", file, key, printable(found->dump())));
  return found->get<bool>();
}

/// Only tokenizers that cut exactly as BERT's may stand behind vocab.txt.
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

TokenizerOptions read_tokenizer_options(const std::filesystem::path& path) {
  TokenizerOptions options;
  if (!std::filesystem::exists(path)) return options;  // the original releases have none, and are uncased
  const auto file = path.string();
  const auto json = read_json(path);
  ensure(json.is_object(), fmt::format("{}: not a JSON object", file));
  check_tokenizer_class(json, file);
  ensure(read_switch(json, "do_basic_tokenize", file).value_or(true),
         fmt::format("{}: do_basic_tokenize = false is not supported; only true is", file));
  options.do_lower_case = read_switch(json, "do_lower_case", file).value_or(true);
  options.strip_accents = read_switch(json, "strip_accents", file);
  options.tokenize_chinese_chars = read_switch(json, "tokenize_chinese_chars", file).value_or(true);
  return options;
}

/// Heads for other tasks and buffers that hold no weights.
bool is_ignorable(const std::string& name) {
  return name.starts_with("cls.") || name.starts_with("bert.pooler.") || name.ends_with("position_ids");
}

/// "a, b, c and 4 more".
std::string listed(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < names.size() && i < most_names_listed; ++i) shown.push_back(printable(names[i]));
  const auto more = names.size() - shown.size();
  return fmt::format("{}{}", fmt::join(shown, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

/// What goes wrong between the wanted tensors and those found, found out before any value is read.
WeightReport match(const WeightFiles& files, std::span<const TensorSpec> wanted, const std::string& directory) {
  WeightReport report;
  std::set<std::string_view> names;
  std::vector<std::string> needed;
  for (const auto& spec : wanted) {
    names.insert(spec.name);
    const auto found = files.entries().find(spec.name);
    if (found == files.entries().end()) {
      (spec.optional ? report.missing : needed).push_back(spec.name);
      continue;
    }
    const auto& [file, tensor] = found->second;
    if (tensor->shape != spec.shape) {
      fail(fmt::format("{}: tensor \"{}\" has shape {}, the model of config.json needs {}", file->path().string(),
                       printable(tensor->name), shape_text(tensor->shape), shape_text(spec.shape)));
    }
  }
  if (!needed.empty())
    fail(fmt::format("the weights in {} lack {} of {} tensors: {}", directory, needed.size(), wanted.size(),
                     listed(needed)));
  std::vector<std::string> extra;
  for (const auto& [name, entry] : files.entries()) {
    if (!names.contains(name)) (is_ignorable(name) ? report.ignored : extra).push_back(entry.tensor->name);
  }
  if (!extra.empty()) {
    fail(fmt::format("the weights in {} have {} tensors that a BERT of this config.json does not: {}", directory,
                     extra.size(), listed(extra)));
  }
  return report;
}

}  // namespace

std::string ignored_line(const WeightReport& report) {
  if (report.ignored.empty()) return {};
  return fmt::format("{} tensors not used for question answering are ignored: {}", report.ignored.size(),
                     listed(report.ignored));
}

PretrainedModel::PretrainedModel(std::filesystem::path directory)
    : directory_(std::move(directory)),
      config_(read_bert_config(directory_ / "config.json")),
      tokenizer_options_(read_tokenizer_options(directory_ / "tokenizer_config.json")) {}

std::filesystem::path PretrainedModel::vocabulary_path() const {
  auto path = directory_ / "vocab.txt";
  ensure(std::filesystem::exists(path), fmt::format("{} has no vocab.txt", directory_.string()));
  return path;
}

TokenizerFiles PretrainedModel::tokenizer_files() const {
  const auto json = directory_ / "tokenizer.json";
  return {read_text(vocabulary_path()), std::filesystem::exists(json) ? read_text(json) : std::string(),
          tokenizer_options_};
}

WeightReport PretrainedModel::read_weights(std::span<const TensorSpec> wanted, const WeightSink& sink) const {
  const WeightFiles files(directory_);
  auto report = match(files, wanted, directory_.string());
  std::vector<float> values;
  for (std::size_t row = 0; row < wanted.size(); ++row) {
    const auto found = files.entries().find(wanted[row].name);
    if (found == files.entries().end()) continue;
    const auto& [file, tensor] = found->second;
    values.resize(element_count(tensor->shape, tensor->name));
    file->read_float(tensor->name, values);
    sink(row, values);
  }
  return report;
}

void check_vocabulary_size(const BertConfig& config, std::size_t tokens, const std::filesystem::path& file) {
  const auto size = config.vocab_size;
  const bool is_padded = size % padding_multiple == 0 && tokens + largest_padding > size;
  if (tokens == size || (tokens < size && is_padded)) return;
  fail(
      fmt::format("{} has {} tokens, config.json says vocab_size = {}: it is not this model's vocabulary, or not whole",
                  file.string(), tokens, size));
}

Vocabulary load_vocabulary(const PretrainedModel& model) {
  Vocabulary vocabulary = Vocabulary::load(model.vocabulary_path());
  check_vocabulary_size(model.config(), vocabulary.size(), model.vocabulary_path());
  return vocabulary;
}

}  // namespace mylos::data
