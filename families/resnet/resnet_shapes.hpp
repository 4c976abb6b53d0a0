#pragma once

#include "families/resnet/resnet_config.hpp"

#include <span>
#include <string>
#include <string_view>

/// ResNets known by their sizes alone, for planning and for training from random initial weights.
namespace mylos::families {

struct NamedResnet {
  std::string name;
  ResnetConfig config;  ///< with ImageNet's 1000 labels
  std::string fetched;  ///< name of a model of this shape with weights for `mylos fetch`
};

/// Returns resnet18, 34, 50, 101 and 152 (He et al. 2016) as in torchvision: the stride of a bottleneck is in its 3 x 3
/// convolution.
std::span<const NamedResnet> resnet_shapes();

/// Returns the shape called `name`. Null if there is none.
const NamedResnet* find_resnet_shape(std::string_view name);
/// Returns the shape called `name`, or fetched by that name. Null if there is none.
const NamedResnet* find_resnet_sizes(std::string_view name);

}  // namespace mylos::families
