#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text/python_json.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/model_family.hpp"
#include "data/huggingface/weight_files.hpp"
#include "families/resnet/resnet_shape.hpp"

/// The configuration of a ResNet in Hugging Face's config.json.
namespace mylos::families {

/// Key of the stem in our config.json. transformers supports only its own stem.
inline constexpr const char* resnet_stem_key = "mylos_stem";

/// The content of config.json: the sizes, and the names of the labels.
struct ResnetConfig {
  ResnetShape shape;
  std::vector<std::string> labels = {"LABEL_0", "LABEL_1"};  ///< id2label, in the order of the ids

  bool operator==(const ResnetConfig&) const = default;
};

/// The sizes of He et al. 2016 as in torchvision: the stride of a bottleneck is in its 3 x 3 convolution. With
/// ImageNet's labels.
inline constexpr std::array known_resnets{
    data::KnownModel{"resnet18", "microsoft/resnet-18",
                     R"({"model_type": "resnet", "num_labels": 1000, "layer_type": "basic",
                         "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]})"},
    data::KnownModel{"resnet34", "microsoft/resnet-34",
                     R"({"model_type": "resnet", "num_labels": 1000, "layer_type": "basic",
                         "hidden_sizes": [64, 128, 256, 512], "depths": [3, 4, 6, 3]})"},
    data::KnownModel{"resnet50", "microsoft/resnet-50",
                     R"({"model_type": "resnet", "num_labels": 1000, "depths": [3, 4, 6, 3]})"},
    data::KnownModel{"resnet101", "microsoft/resnet-101",
                     R"({"model_type": "resnet", "num_labels": 1000, "depths": [3, 4, 23, 3]})"},
    data::KnownModel{"resnet152", "microsoft/resnet-152",
                     R"({"model_type": "resnet", "num_labels": 1000, "depths": [3, 8, 36, 3]})"}};

/// Returns the one of known_resnets called `name`, for ImageNet's images; nullopt if there is none.
std::optional<ResnetConfig> known_resnet(std::string_view name);

/// Reads a config.json in the format of transformers or of timm. In timm's format, `architecture`
/// must be the name of a known shape. Throws std::runtime_error with the file, the key, its value and the supported
/// values.
ResnetConfig read_resnet_config(const data::ModelConfig& from);

/// Returns the config.json of a ResNetForImageClassification. transformers can load it if the stem is imagenet.
OrderedJson resnet_config_json(const ResnetConfig& config, std::string_view dtype = "float32");

/// Returns the name of tensor `name` in transformers' ResNetForImageClassification. Accepts the names of torchvision
/// and timm (conv1, layer1.0.bn2, fc), those of a bare ResNetModel, and those with the prefix "module." that PyTorch's
/// DDP saves.
std::string canonical_resnet_name(std::string_view name);

/// True if the tensor with this canonical name belongs to the final linear layer, which gives the labels.
bool is_resnet_classifier(std::string_view name);
/// True if it is BatchNorm's integer count of batches (num_batches_tracked).
bool is_batch_count(std::string_view name);

/// Sets the labels and the stem of `config` to those of the weights in `directory`. Without a final layer, the labels
/// stay. Errors as for WeightFiles.
void take_weights_shape(const FileReader& files, const std::filesystem::path& directory, ResnetConfig& config);

/// Returns the naming based on canonical_resnet_name. Without `with_classifier` the file's classifier is ignored.
data::TensorNaming resnet_tensor_naming(bool with_classifier);

}  // namespace mylos::families
