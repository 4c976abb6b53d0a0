#pragma once

#include <string>
#include <string_view>

#include "data/huggingface/weight_files.hpp"

/// What weight files call the tensors of a ResNet.
namespace mylos::data {

/// The name that transformers' ResNetForImageClassification gives the tensor `name`: from torchvision's and timm's
/// names (conv1, layer1.0.bn2, fc), those of a bare ResNetModel, and those below "module.", as PyTorch's DDP saves
/// them.
std::string canonical_resnet_name(std::string_view name);

/// Whether a tensor, by its canonical name, belongs to the linear layer that gives the labels.
bool is_resnet_classifier(std::string_view name);
/// Whether it is BatchNorm's count of batches, a whole number.
bool is_batch_count(std::string_view name);

/// These names. Without `with_classifier` the file's classifier is ignored.
TensorNaming resnet_tensor_naming(bool with_classifier);

}  // namespace mylos::data
