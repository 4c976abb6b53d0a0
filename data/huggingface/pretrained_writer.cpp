#include <fmt/format.h>

#include <set>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/files.hpp"
#include "core/base/printable.hpp"
#include "data/huggingface/pretrained.hpp"

namespace mylos::data {
namespace {

constexpr const char* config_name = "config.json";
constexpr const char* weights_name = "model.safetensors";

/// Throws where `files` could not stand beside the configuration and the weights.
void check_names(std::span<const ModelFile> files) {
  std::set<std::string_view> names = {config_name, weights_name, "model.safetensors.index.json"};
  for (const ModelFile& file : files) {
    const bool is_name = !file.name.empty() && file.name != "." && file.name != ".." &&
                         file.name.find('/') == std::string::npos && file.name.find('\0') == std::string::npos;
    require(is_name, fmt::format("\"{}\" is not the name of a file in a model directory", printable(file.name)));
    require(names.insert(file.name).second,
            fmt::format("{}: a model directory holds only one file of this name", printable(file.name)));
  }
}

/// `directory`, cleared of what killed writers left beside it.
const std::filesystem::path& prepared(const std::filesystem::path& directory, std::span<const ModelFile> files) {
  check_names(files);
  remove_abandoned(directory);
  return directory;
}

}  // namespace

std::string model_json_text(const OrderedJson& json) { return json.dump(2) + "\n"; }

PretrainedWriter::PretrainedWriter(const std::filesystem::path& directory, const OrderedJson& config,
                                   std::span<const ModelFile> files, std::span<const TensorShape> weights)
    : staged_(prepared(directory, files)), weights_(staged_.path() / weights_name, weights) {
  write_text(staged_.path() / config_name, model_json_text(config));
  for (const ModelFile& file : files) write_text(staged_.path() / file.name, file.bytes);
}

void PretrainedWriter::commit() {
  weights_.commit();
  staged_.commit();
}

void write_pretrained(const std::filesystem::path& directory, const OrderedJson& config,
                      std::span<const ModelFile> files, std::span<const NamedTensor> weights) {
  PretrainedWriter writer(directory, config, files, shapes_of(weights));
  for (const auto& tensor : weights) writer.write(tensor.values);
  writer.commit();
}

}  // namespace mylos::data
