#include "families/resnet/resnet_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/error.hpp"
#include "data/huggingface/label_names.hpp"

namespace mylos::families {
namespace {

// Upper limits, above any ResNet. A file beyond them is damaged.
constexpr std::size_t widest_resnet = std::size_t{1} << 16;
constexpr std::size_t deepest_resnet = 1024;
constexpr std::size_t most_stages = 64;
constexpr std::size_t most_image_channels = 3;

constexpr const char* resnet_title = "a ResNet";

void read_sizes(const data::ConfigReader& reader, const char* key, std::size_t most, std::vector<std::size_t>& sizes) {
  const Json* list = reader.find(key);
  if (list == nullptr) return;
  const auto is_size = [&](const Json& each) {
    return each.is_number_unsigned() && each.get<std::size_t>() >= 1 && each.get<std::size_t>() <= most;
  };
  if (!list->is_array() || list->empty() || list->size() > most_stages || !std::ranges::all_of(*list, is_size)) {
    fail(fmt::format("{}: {} = {} is not a list of whole numbers from 1 to {}", reader.file(), key,
                     data::json_value_text(*list), most));
  }
  sizes = list->get<std::vector<std::size_t>>();
}

void check_sizes(const data::ConfigReader& reader, const ResnetShape& shape) {
  if (shape.hidden.size() != shape.depths.size()) {
    fail(fmt::format("{}: {} hidden_sizes and {} depths; each stage has one of both", reader.file(),
                     shape.hidden.size(), shape.depths.size()));
  }
  for (const std::size_t size : shape.hidden) {
    if (!shape.bottleneck || size % bottleneck_reduction == 0) continue;
    fail(fmt::format("{}: hidden_sizes has {}; with layer_type \"bottleneck\" each is a multiple of {}", reader.file(),
                     size, bottleneck_reduction));
  }
}

/// Parses timm's config.json: the name of an architecture and the number of labels.
ResnetConfig parse_timm_config(const data::ConfigReader& reader) {
  const Json& name = *reader.find("architecture");
  std::optional<ResnetConfig> known;
  if (name.is_string()) known = known_resnet(name.get<std::string>());
  if (!known) {
    std::vector<std::string_view> names;
    for (const data::KnownModel& each : known_resnets) names.push_back(each.name);
    fail(fmt::format("{}: architecture = {} is not supported; only {} and {} are", reader.file(),
                     data::json_value_text(name), fmt::join(names.begin(), names.end() - 1, ", "), names.back()));
  }
  std::size_t labels = known->labels.size();
  reader.read_size("num_classes", 1, data::most_labels, labels, false);
  known->labels = data::unnamed_labels(labels);
  return *known;
}

/// Removes `prefix` from the front of `text`. Returns false if `text` does not begin with it.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Removes a number of at most four digits from the front of `text`: the index of a stage or layer.
std::optional<std::size_t> take_number(std::string_view& text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || digits == 0 || digits > 4) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

/// Returns our name of a tensor in a block, given torchvision's name after "layer1.0.". Empty if unknown.
std::string name_in_block(std::string_view part) {
  if (take(part, "downsample.0.")) return fmt::format("shortcut.convolution.{}", part);
  if (take(part, "downsample.1.")) return fmt::format("shortcut.normalization.{}", part);
  for (const auto& [prefix, kind] : {std::pair{"conv", "convolution"}, std::pair{"bn", "normalization"}}) {
    if (!take(part, prefix)) continue;
    const auto number = take_number(part);
    if (!number || *number == 0 || !take(part, ".")) return {};
    return fmt::format("layer.{}.{}.{}", *number - 1, kind, part);
  }
  return {};
}

/// Converts torchvision's "layer1.0.conv1.weight". Returns an empty string for other names.
std::string name_of_block(std::string_view name) {
  if (!take(name, "layer")) return {};
  const auto stage = take_number(name);
  if (!stage || *stage == 0 || !take(name, ".")) return {};
  const auto block = take_number(name);
  if (!block || !take(name, ".")) return {};
  const std::string part = name_in_block(name);
  return part.empty() ? "" : fmt::format("resnet.encoder.stages.{}.layers.{}.{}", *stage - 1, *block, part);
}

}  // namespace

std::optional<ResnetConfig> known_resnet(std::string_view name) {
  const auto* const found = std::ranges::find(known_resnets, name, &data::KnownModel::name);
  if (found == known_resnets.end()) return std::nullopt;
  return read_resnet_config(*found);
}

ResnetConfig read_resnet_config(const data::ModelConfig& from) {
  const data::ConfigReader reader(from, resnet_title);
  if (reader.find("model_type") == nullptr && reader.find("architecture") != nullptr) return parse_timm_config(reader);
  reader.check_model_type("resnet");
  ResnetConfig config;
  ResnetShape& shape = config.shape;
  reader.read_size("num_channels", 1, most_image_channels, shape.channels, false);
  reader.read_size("embedding_size", 1, widest_resnet, shape.embedding, false);
  read_sizes(reader, "hidden_sizes", widest_resnet, shape.hidden);
  read_sizes(reader, "depths", deepest_resnet, shape.depths);
  shape.bottleneck = reader.read_second("layer_type", "basic", "bottleneck", shape.bottleneck);
  reader.read_choice("hidden_act", "relu", "relu");
  reader.read_flag("downsample_in_first_stage", shape.downsample_in_first_stage);
  reader.read_flag("downsample_in_bottleneck", shape.downsample_in_bottleneck);
  config.labels = data::read_label_names(reader, config.labels.size());
  const bool is_cifar = reader.read_second(resnet_stem_key, "imagenet", "cifar", false);
  shape.stem = is_cifar ? ImageStem::cifar : ImageStem::imagenet;
  check_sizes(reader, shape);
  return config;
}

OrderedJson resnet_config_json(const ResnetConfig& config, std::string_view dtype) {
  OrderedJson json;
  json["architectures"] = {"ResNetForImageClassification"};
  json["model_type"] = "resnet";
  json["num_channels"] = config.shape.channels;
  json["embedding_size"] = config.shape.embedding;
  json["hidden_sizes"] = config.shape.hidden;
  json["depths"] = config.shape.depths;
  json["layer_type"] = config.shape.bottleneck ? "bottleneck" : "basic";
  json["hidden_act"] = "relu";
  json["downsample_in_first_stage"] = config.shape.downsample_in_first_stage;
  json["downsample_in_bottleneck"] = config.shape.downsample_in_bottleneck;
  if (config.shape.stem != ImageStem::imagenet) json[resnet_stem_key] = to_string(config.shape.stem);
  data::write_label_names(config.labels, json);
  json["torch_dtype"] = dtype;
  return json;
}

std::string canonical_resnet_name(std::string_view name) {
  take(name, "module.");
  struct Renamed {
    std::string_view from, to;
  };
  constexpr std::array renamed = {Renamed{"conv1.", "resnet.embedder.embedder.convolution."},
                                  Renamed{"bn1.", "resnet.embedder.embedder.normalization."},
                                  Renamed{"fc.", "classifier.1."}, Renamed{"embedder.", "resnet.embedder."},
                                  Renamed{"encoder.", "resnet.encoder."}};
  for (const auto& [from, to] : renamed) {
    if (take(name, from)) return fmt::format("{}{}", to, name);
  }
  const std::string block = name_of_block(name);
  return block.empty() ? std::string(name) : block;
}

bool is_resnet_classifier(std::string_view name) { return name.starts_with("classifier."); }

bool is_batch_count(std::string_view name) { return name.ends_with(".num_batches_tracked"); }

void take_weights_shape(const FileReader& files, const std::filesystem::path& directory, ResnetConfig& config) {
  const data::WeightFiles weights(files, directory, canonical_resnet_name);
  const auto shape_of = [&](const char* name) {
    const auto found = weights.entries().find(name);
    return found == weights.entries().end() ? std::vector<std::size_t>() : found->second.tensor->shape;
  };
  const auto last = shape_of("classifier.1.weight"), first = shape_of("resnet.embedder.embedder.convolution.weight");
  if (!last.empty()) config.labels = data::unnamed_labels(last.front());
  if (first.size() == 4) config.shape.stem = first.back() == 3 ? ImageStem::cifar : ImageStem::imagenet;
}

data::TensorNaming resnet_tensor_naming(bool with_classifier) {
  return {.model = "a ResNet",
          .canonical = canonical_resnet_name,
          .is_ignored = with_classifier ? nullptr : is_resnet_classifier};
}

}  // namespace mylos::families
