#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/python_json.hpp"

/// The configuration of a ResNet as Hugging Face's config.json holds it.
namespace mylos::data {

class PretrainedModel;

inline constexpr std::size_t most_resnet_labels = 1'000'000;

/// The first layers of a network.
enum class ResnetStem {
  imagenet,  ///< 7 x 7 with stride 2, and max pooling with stride 2
  cifar,     ///< 3 x 3 with stride 1, without pooling
};

/// The key that says the stem in our config.json; transformers knows no other stem than its own.
inline constexpr const char* resnet_stem_key = "mylos_stem";

/// "imagenet" or "cifar".
std::string_view to_string(ResnetStem stem);

/// Names and defaults are those of transformers' ResNetConfig.
struct ResnetConfig {
  std::size_t num_channels = 3;
  std::size_t embedding_size = 64;
  std::vector<std::size_t> hidden_sizes = {256, 512, 1024, 2048};
  std::vector<std::size_t> depths = {3, 4, 6, 3};
  bool bottleneck = true;  ///< layer_type; false: basic
  bool downsample_in_first_stage = false;
  bool downsample_in_bottleneck = false;
  std::vector<std::string> labels = {"LABEL_0", "LABEL_1"};  ///< id2label, by their numbers
  ResnetStem stem = ResnetStem::imagenet;

  bool operator==(const ResnetConfig&) const = default;
};

/// "LABEL_0", "LABEL_1", ...: what transformers calls labels without names.
std::vector<std::string> unnamed_labels(std::size_t count);

/// The configuration in `json`, which came from `file`: transformers' form, or timm's, which names an `architecture`
/// that is known by its sizes. Throws std::runtime_error naming the file, the key, its value and what is supported.
ResnetConfig parse_resnet_config(const Json& json, const std::string& file);

/// Reads config.json; errors as parse_resnet_config.
ResnetConfig read_resnet_config(const std::filesystem::path& path);
ResnetConfig read_resnet_config(const PretrainedModel& model);

/// The config.json of a ResNetForImageClassification. transformers loads it where the stem is imagenet.
OrderedJson resnet_config_json(const ResnetConfig& config, std::string_view dtype = "float32");

}  // namespace mylos::data
