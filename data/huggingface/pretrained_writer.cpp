#include <fmt/format.h>

#include <set>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/files.hpp"
#include "core/base/printable.hpp"
#include "data/huggingface/pretrained.hpp"
#include "data/huggingface/weight_files.hpp"

namespace mylos::data {
namespace {

constexpr const char* config_name = "config.json";

/// Throws if one of `files` would conflict with the configuration or the weights.
void check_names(std::span<const ModelFile> files) {
  std::set<std::string_view> names = {config_name, weights_file, weights_index_file};
  for (const ModelFile& file : files) {
    require(is_file_name(file.name),
            fmt::format("\"{}\" is not the name of a file in a model directory", printable(file.name)));
    require(names.insert(file.name).second,
            fmt::format("{}: a model directory holds only one file of this name", printable(file.name)));
  }
}

/// Removes the leftovers of killed writers beside `directory`, and returns it.
const std::filesystem::path& prepared(const std::filesystem::path& directory, std::span<const ModelFile> files) {
  check_names(files);
  remove_abandoned(directory);
  return directory;
}

}  // namespace

std::string model_json_text(const OrderedJson& json) { return json.dump(2) + "\n"; }

PretrainedWriter::PretrainedWriter(const std::filesystem::path& directory, const OrderedJson& config,
                                   std::span<const ModelFile> files, std::span<const TensorShape> weights,
                                   const WeightFormat& format)
    : staged_(prepared(directory, files)), weights_(staged_.path(), weights, format) {
  write_text(staged_.path() / config_name, model_json_text(config));
  for (const ModelFile& file : files) write_text(staged_.path() / file.name, file.bytes);
}

void PretrainedWriter::commit() {
  weights_.commit();
  staged_.commit();
}

void write_pretrained(const std::filesystem::path& directory, const OrderedJson& config,
                      std::span<const ModelFile> files, std::span<const NamedTensor> weights,
                      const WeightFormat& format) {
  PretrainedWriter writer(directory, config, files, shapes_of(weights), format);
  for (const auto& tensor : weights) writer.write(tensor.values);
  writer.commit();
}

}  // namespace mylos::data
