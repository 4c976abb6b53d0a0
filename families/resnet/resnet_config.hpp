#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/python_json.hpp"

namespace mylos::data {
class PretrainedModel;
}

/// The configuration of a ResNet in Hugging Face's config.json.
namespace mylos::families {

inline constexpr std::size_t most_resnet_labels = 1'000'000;

/// The first layers of a network.
enum class ResnetStem {
  imagenet,  ///< 7 x 7 convolution with stride 2, then max pooling with stride 2
  cifar,     ///< 3 x 3 convolution with stride 1, no pooling
};

/// Key of the stem in our config.json. transformers supports only its own stem.
inline constexpr const char* resnet_stem_key = "mylos_stem";

/// Returns "imagenet" or "cifar".
std::string_view to_string(ResnetStem stem);

/// Names and defaults match transformers' ResNetConfig.
struct ResnetConfig {
  std::size_t num_channels = 3;
  std::size_t embedding_size = 64;
  std::vector<std::size_t> hidden_sizes = {256, 512, 1024, 2048};
  std::vector<std::size_t> depths = {3, 4, 6, 3};
  bool bottleneck = true;  ///< layer_type "bottleneck"; false: "basic"
  bool downsample_in_first_stage = false;
  bool downsample_in_bottleneck = false;
  std::vector<std::string> labels = {"LABEL_0", "LABEL_1"};  ///< id2label, in the order of the ids
  ResnetStem stem = ResnetStem::imagenet;

  bool operator==(const ResnetConfig&) const = default;
};

/// Returns "LABEL_0", "LABEL_1", ...: transformers' names for unnamed labels.
std::vector<std::string> unnamed_labels(std::size_t count);

/// Parses `json`, the content of `file`, in the format of transformers or of timm. In timm's format, `architecture`
/// must be the name of a known shape. Throws std::runtime_error with the file, the key, its value and the supported
/// values.
ResnetConfig parse_resnet_config(const Json& json, const std::string& file);

/// Reads config.json. Errors as for parse_resnet_config.
ResnetConfig read_resnet_config(const std::filesystem::path& path);
ResnetConfig read_resnet_config(const data::PretrainedModel& model);

/// Returns the config.json of a ResNetForImageClassification. transformers can load it if the stem is imagenet.
OrderedJson resnet_config_json(const ResnetConfig& config, std::string_view dtype = "float32");

}  // namespace mylos::families
