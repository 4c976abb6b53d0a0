#pragma once

#include "core/kernels/pixels.hpp"
#include "core/kernels/products/convolution_shape.hpp"
#include "families/interface/image_format.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

/// The sizes of a ResNet (He et al. 2015), including torchvision's and Hugging Face's variants.
namespace mylos::families {

/// Channels of a bottleneck's result per inner channel.
inline constexpr std::size_t bottleneck_reduction = 4;

/// Defaults match transformers' ResNetConfig, and ImageNet's images.
struct ResnetShape : ImageFormat {
  std::size_t channels = 3;    ///< of the images
  std::size_t embedding = 64;  ///< channels after the stem
  std::vector<std::size_t> hidden = {256, 512, 1024,
                                     2048};        ///< channels after each stage; multiples of 4 if bottleneck
  std::vector<std::size_t> depths = {3, 4, 6, 3};  ///< blocks per stage
  bool bottleneck = true;                          ///< false: basic blocks
  bool downsample_in_first_stage = false;
  bool downsample_in_bottleneck = false;  ///< the first 1 x 1 convolution of a bottleneck has the stride, instead of
                                          ///< the 3 x 3
  ImageStem stem = ImageStem::imagenet;

  bool operator==(const ResnetShape&) const = default;
  std::size_t pixels() const { return height * width; }
};

/// Checks the sizes. Errors: std::invalid_argument if they do not fit together, or if the images are too small.
void check_shape(const ResnetShape& shape);

/// The convolutions of a block, in order, and of its shortcut unless that is the identity.
struct ResnetBlockShape {
  std::vector<ConvolutionShape> layers;
  std::optional<ConvolutionShape> shortcut;

  const ConvolutionShape& last() const { return layers.back(); }
};

ConvolutionShape stem_convolution(const ResnetShape& shape);
/// Returns the blocks of each stage. The height and width of each stage follow from the image size.
std::vector<std::vector<ResnetBlockShape>> resnet_stages(const ResnetShape& shape);

PixelNormalization pixel_normalization(const ResnetShape& shape);

}  // namespace mylos::families
