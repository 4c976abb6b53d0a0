#pragma once

#include "data/huggingface/resnet_config.hpp"

#include <span>
#include <string>
#include <string_view>

/// ResNets that are known by their sizes alone: to plan and to train from the initialiser.
namespace mylos::data {

struct NamedResnet {
  std::string name;
  ResnetConfig config;  ///< with the 1000 labels of ImageNet
  std::string fetched;  ///< what `mylos fetch` calls one of this shape with weights
};

/// resnet18, 34, 50, 101 and 152 (He et al. 2016) as torchvision has them: a bottleneck's stride is in its 3 x 3
/// convolution.
std::span<const NamedResnet> resnet_shapes();

/// The one called `name`; null where there is none.
const NamedResnet* find_resnet_shape(std::string_view name);
/// The one called `name`, or fetched by that name; null where there is none.
const NamedResnet* find_resnet_sizes(std::string_view name);

}  // namespace mylos::data
