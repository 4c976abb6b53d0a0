#include "data/huggingface/pretrained.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/quantities.hpp"
#include "data/huggingface/model_type.hpp"

namespace mylos::data {
namespace {

constexpr std::size_t most_names_listed = 8;
constexpr std::size_t most_values_compared = std::size_t{1} << 18;

/// Reads integers as float, starting at element `first`.
void read_counts(const WeightEntry& entry, std::size_t first, std::span<float> values) {
  const std::vector<std::int64_t> counts = entry.file->read_integer(entry.tensor->name);
  require(first <= counts.size() && values.size() <= counts.size() - first, "counts beyond the end of their tensor");
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(counts[first + i]);
}

/// Throws if the files store both tensors of naming.copy and they differ.
void compare_copy(const WeightFiles& weights, const TensorNaming& naming, const std::string& directory) {
  const auto copy = weights.entries().find(std::string(naming.copy)),
             copied = weights.entries().find(std::string(naming.copied)), none = weights.entries().end();
  if (copy == none || copied == none) return;
  const std::size_t count = element_count(copied->second.tensor->shape, copied->first);
  bool is_same = copy->second.tensor->shape == copied->second.tensor->shape;
  std::vector<float> values, others;
  for (std::size_t first = 0; is_same && first < count; first += values.size()) {
    values.resize(std::min(most_values_compared, count - first));
    others.resize(values.size());
    tensor_reader(copy->second, false)(first, values);
    tensor_reader(copied->second, false)(first, others);
    is_same = values == others;
  }
  ensure(is_same,
         fmt::format("the weights in {}: {} differs from {}, and {} ties them; set tie_word_embeddings to false "
                     "to use it, or remove it",
                     directory, copy->second.tensor->name, copied->second.tensor->name, weights.names().config));
}

/// The same, in one of the processes that share the copies of `files`.
void check_copy(const FileReader& files, const WeightFiles& weights, const TensorNaming& naming,
                const std::filesystem::path& directory) {
  if (naming.copy.empty()) return;
  bool is_same = true;
  files.read_once(
      directory / naming.copied, [&] { compare_copy(weights, naming, directory.string()); }, is_same);
}

}  // namespace

std::string listed(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < names.size() && i < most_names_listed; ++i) shown.push_back(printable(names[i]));
  const auto more = names.size() - shown.size();
  return fmt::format("{}{}", fmt::join(shown, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string ignored_line(const WeightReport& report, std::string_view purpose) {
  if (report.ignored.empty()) return {};
  return fmt::format("{} not used for {} {} ignored: {}", count_of(report.ignored.size(), "tensor"), purpose,
                     report.ignored.size() == 1 ? "is" : "are", listed(report.ignored));
}

WeightReport match_weights(const WeightFiles& files, std::span<const TensorSpec> wanted, const TensorNaming& naming,
                           const std::string& directory) {
  WeightReport report;
  const char* const config = files.names().config;
  files.check_unnamed(naming);
  for (const WeightEntry& entry : files.unnamed()) report.ignored.push_back(entry.tensor->name);
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
      fail(fmt::format("{} has shape {}, the model of {} needs {}", tensor_subject(file->path().string(), tensor->name),
                       shape_text(tensor->shape), config, shape_text(spec.shape)));
    }
    const bool is_integer = tensor->type == "I64" || tensor->type == "I32";
    if (spec.is_count && !is_integer) {
      fail(fmt::format("{} has type {}; counts are I64 or I32", tensor_subject(file->path().string(), tensor->name),
                       tensor->type));
    }
    if (!spec.is_count && !safetensors_precision(tensor->type)) {
      fail(fmt::format("{} has type {}; weights are F32, BF16, F16 or F64",
                       tensor_subject(file->path().string(), tensor->name), tensor->type));
    }
  }
  if (!needed.empty())
    fail(fmt::format("the weights in {} lack {} of {} tensors: {}", directory, needed.size(), wanted.size(),
                     listed(needed)));
  std::vector<std::string> extra;
  for (const auto& [name, entry] : files.entries()) {
    if (names.contains(name)) continue;
    (naming.ignores(name) ? report.ignored : extra).push_back(entry.tensor->name);
  }
  if (!extra.empty()) {
    fail(fmt::format("the weights in {} have {} that {} of this {} does not: {}", directory,
                     count_of(extra.size(), "tensor"), naming.model, config, listed(extra)));
  }
  return report;
}

TensorReader tensor_reader(const WeightEntry& entry, bool is_count) {
  return [entry, is_count](std::size_t first, std::span<float> values) {
    if (is_count) return read_counts(entry, first, values);
    entry.file->read_float(entry.tensor->name, first, values);
  };
}

PretrainedModel::PretrainedModel(const FileReader& files, std::filesystem::path directory)
    : directory_(std::move(directory)) {
  const std::string file = config_path().string();
  const std::string text = read_text_file(files, config_path());
  ensure(parse_json(text, file).is_object(), fmt::format("{}: not a JSON object", file));
  config_ = try_parse_ordered_json(text);
}

PretrainedModel::PretrainedModel(std::filesystem::path directory, OrderedJson config)
    : directory_(std::move(directory)), config_(std::move(config)) {}

std::string PretrainedModel::model_type() const { return model_type_of(Json(config_), config_path().string()); }

Precision PretrainedModel::weights_precision(const FileReader& files) const {
  auto precision = Precision::float32;
  // Only the precision is kept for other processes: `files` would also keep the headers of all weights.
  const auto read = [&] { precision = WeightFiles(FileReader(), directory_).precision().value_or(Precision::float32); };
  files.read_once(directory_, read, precision);
  return precision;
}

void PretrainedModel::read_weight_headers(const FileReader& files, const TensorNaming& naming) const {
  if (has_weights(files)) check_copy(files, WeightFiles(files, directory_, naming.canonical), naming, directory_);
}

std::vector<ModelFile> PretrainedModel::read_files(const FileReader& files,
                                                   std::span<const std::string_view> names) const {
  std::vector<ModelFile> found;
  for (const std::string_view name : names) {
    const auto path = directory_ / name;
    if (is_present(path)) found.push_back({std::string(name), files.read_text(path)});
  }
  return found;
}

WeightReport PretrainedModel::read_weights(const FileReader& files, std::span<const TensorSpec> wanted,
                                           const TensorNaming& naming, const WeightSink& sink) const {
  const WeightFiles weights(files, directory_, naming.canonical);
  auto report = match_weights(weights, wanted, naming, directory_.string());
  check_copy(files, weights, naming, directory_);
  for (std::size_t row = 0; row < wanted.size(); ++row) {
    const auto found = weights.entries().find(wanted[row].name);
    if (found != weights.entries().end()) sink(row, tensor_reader(found->second, wanted[row].is_count));
  }
  return report;
}

}  // namespace mylos::data
