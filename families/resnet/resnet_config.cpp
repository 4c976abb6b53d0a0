#include "families/resnet/resnet_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/error.hpp"
#include "core/base/printable.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/pretrained.hpp"
#include "families/resnet/resnet_shapes.hpp"

namespace mylos::families {
namespace {

// Upper limits, above any ResNet. A file beyond them is damaged.
constexpr std::size_t widest_resnet = std::size_t{1} << 16;
constexpr std::size_t deepest_resnet = 1024;
constexpr std::size_t most_stages = 64;
constexpr std::size_t most_image_channels = 3;
constexpr std::size_t bottleneck_factor = 4;

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

/// Reads the names in id2label, whose keys are the strings "0", "1", ...
std::vector<std::string> named_labels(const data::ConfigReader& reader, const Json& names) {
  if (!names.is_object() || names.empty()) {
    fail(fmt::format("{}: id2label is not an object of label names", reader.file()));
  }
  std::vector<std::string> labels(names.size());
  std::vector<bool> is_there(names.size());
  for (const auto& [key, name] : names.items()) {
    std::size_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool is_id = error == std::errc() && end == key.data() + key.size() && id < labels.size() && !is_there[id];
    if (!is_id || !name.is_string()) {
      fail(fmt::format("{}: id2label: \"{}\": {} is not the name of one of its labels 0 to {}", reader.file(),
                       printable(key), data::json_value_text(name), labels.size() - 1));
    }
    labels[id] = name.get<std::string>();
    is_there[id] = true;
  }
  return labels;
}

void read_labels(const data::ConfigReader& reader, ResnetConfig& config) {
  std::size_t count = config.labels.size();
  reader.read_size("num_labels", 1, most_resnet_labels, count, false);
  const Json* names = reader.find("id2label");
  if (names == nullptr) {
    config.labels = unnamed_labels(count);
    return;
  }
  config.labels = named_labels(reader, *names);
  if (reader.find("num_labels") == nullptr || count == config.labels.size()) return;
  fail(fmt::format("{}: num_labels = {}, but id2label has {}", reader.file(), count, config.labels.size()));
}

void read_layer_type(const data::ConfigReader& reader, ResnetConfig& config) {
  const Json* type = reader.find("layer_type");
  if (type == nullptr) return;
  if (*type != "basic" && *type != "bottleneck") {
    fail(fmt::format("{}: layer_type = {} is not supported; only \"basic\" and \"bottleneck\" are", reader.file(),
                     data::json_value_text(*type)));
  }
  config.bottleneck = *type == "bottleneck";
}

void read_stem(const data::ConfigReader& reader, ResnetConfig& config) {
  const Json* stem = reader.find(resnet_stem_key);
  if (stem == nullptr) return;
  if (*stem != to_string(ResnetStem::imagenet) && *stem != to_string(ResnetStem::cifar)) {
    fail(fmt::format("{}: {} = {} is not supported; only \"imagenet\" and \"cifar\" are", reader.file(),
                     resnet_stem_key, data::json_value_text(*stem)));
  }
  config.stem = *stem == to_string(ResnetStem::cifar) ? ResnetStem::cifar : ResnetStem::imagenet;
}

void check_sizes(const data::ConfigReader& reader, const ResnetConfig& config) {
  if (config.hidden_sizes.size() != config.depths.size()) {
    fail(fmt::format("{}: {} hidden_sizes and {} depths; each stage has one of both", reader.file(),
                     config.hidden_sizes.size(), config.depths.size()));
  }
  for (const std::size_t size : config.hidden_sizes) {
    if (!config.bottleneck || size % bottleneck_factor == 0) continue;
    fail(fmt::format("{}: hidden_sizes has {}; with layer_type \"bottleneck\" each is a multiple of {}", reader.file(),
                     size, bottleneck_factor));
  }
}

/// Parses timm's config.json: the name of an architecture and the number of labels.
ResnetConfig parse_timm_config(const data::ConfigReader& reader) {
  const Json& name = *reader.find("architecture");
  const NamedResnet* known = name.is_string() ? find_resnet_shape(name.get<std::string>()) : nullptr;
  if (known == nullptr) {
    fail(
        fmt::format("{}: architecture = {} is not supported; only resnet18, resnet34, resnet50, resnet101 and "
                    "resnet152 are",
                    reader.file(), data::json_value_text(name)));
  }
  ResnetConfig config = known->config;
  std::size_t labels = config.labels.size();
  reader.read_size("num_classes", 1, most_resnet_labels, labels, false);
  config.labels = unnamed_labels(labels);
  return config;
}

}  // namespace

std::string_view to_string(ResnetStem stem) { return stem == ResnetStem::cifar ? "cifar" : "imagenet"; }

std::vector<std::string> unnamed_labels(std::size_t count) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < count; ++i) labels.push_back(fmt::format("LABEL_{}", i));
  return labels;
}

ResnetConfig parse_resnet_config(const Json& json, const std::string& file) {
  const data::ConfigReader reader(json, file, resnet_title);
  if (reader.find("model_type") == nullptr && reader.find("architecture") != nullptr) return parse_timm_config(reader);
  reader.check_model_type("resnet");
  ResnetConfig config;
  reader.read_size("num_channels", 1, most_image_channels, config.num_channels, false);
  reader.read_size("embedding_size", 1, widest_resnet, config.embedding_size, false);
  read_sizes(reader, "hidden_sizes", widest_resnet, config.hidden_sizes);
  read_sizes(reader, "depths", deepest_resnet, config.depths);
  read_layer_type(reader, config);
  reader.read_choice("hidden_act", "relu", "relu");
  reader.read_flag("downsample_in_first_stage", config.downsample_in_first_stage);
  reader.read_flag("downsample_in_bottleneck", config.downsample_in_bottleneck);
  read_labels(reader, config);
  read_stem(reader, config);
  check_sizes(reader, config);
  return config;
}

ResnetConfig read_resnet_config(const std::filesystem::path& path) {
  return parse_resnet_config(read_json(path), path.string());
}

ResnetConfig read_resnet_config(const data::PretrainedModel& model) {
  return parse_resnet_config(Json(model.config()), model.config_path().string());
}

OrderedJson resnet_config_json(const ResnetConfig& config, std::string_view dtype) {
  OrderedJson json;
  json["architectures"] = {"ResNetForImageClassification"};
  json["model_type"] = "resnet";
  json["num_channels"] = config.num_channels;
  json["embedding_size"] = config.embedding_size;
  json["hidden_sizes"] = config.hidden_sizes;
  json["depths"] = config.depths;
  json["layer_type"] = config.bottleneck ? "bottleneck" : "basic";
  json["hidden_act"] = "relu";
  json["downsample_in_first_stage"] = config.downsample_in_first_stage;
  json["downsample_in_bottleneck"] = config.downsample_in_bottleneck;
  if (config.stem != ResnetStem::imagenet) json[resnet_stem_key] = to_string(config.stem);
  OrderedJson names = OrderedJson::object(), ids = OrderedJson::object();
  for (std::size_t id = 0; id < config.labels.size(); ++id) {
    names[std::to_string(id)] = config.labels[id];
    ids[config.labels[id]] = id;
  }
  json["id2label"] = std::move(names);
  json["label2id"] = std::move(ids);
  json["torch_dtype"] = dtype;
  return json;
}

}  // namespace mylos::families
