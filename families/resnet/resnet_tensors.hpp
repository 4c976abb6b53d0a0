#pragma once

#include <string>
#include <string_view>

#include "data/huggingface/weight_files.hpp"
#include "families/resnet/resnet_config.hpp"

/// Names of a ResNet's tensors in weight files.
namespace mylos::families {

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
