#include "data/huggingface/model_type.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"

namespace mylos::data {
namespace {

/// True if timm's `architecture` is a ResNet.
bool names_resnet(const Json& config) {
  const auto found = config.find("architecture");
  return found != config.end() && found->is_string() && found->get_ref<const std::string&>().starts_with("resnet");
}

}  // namespace

std::string model_type_of(const Json& config, const std::string& file) {
  ensure(config.is_object(), fmt::format("{}: not a JSON object", file));
  const auto found = config.find("model_type");
  if (found == config.end() || found->is_null()) {
    return first_architecture(config).starts_with("Bert") ? "bert" : names_resnet(config) ? "resnet" : "";
  }
  if (found->is_string()) return found->get<std::string>();
  fail(fmt::format("{}: model_type = {} is not a string", file, printable(found->dump())));
}

std::string model_type_of(const FileReader& files, const std::filesystem::path& directory) {
  const auto file = directory / "config.json";
  return model_type_of(read_json(files, file), file.string());
}

std::string first_architecture(const Json& config) {
  const auto found = config.find("architectures");
  if (found == config.end() || !found->is_array() || found->empty() || !found->front().is_string()) return {};
  return found->front().get<std::string>();
}

}  // namespace mylos::data
