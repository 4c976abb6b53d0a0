#pragma once

#include "core/kernels/convolution_shape.hpp"
#include "core/kernels/pixels.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

/// The sizes of a ResNet (He et al. 2015), including torchvision's and Hugging Face's variants.
namespace mylos::families {

struct ResnetShape {
  enum class Stem {
    imagenet,  ///< 7 x 7 with stride 2, then 3 x 3 max pooling with stride 2
    cifar,     ///< 3 x 3, without pooling
  };

  std::size_t height = 224, width = 224, channels = 3;  ///< size of the images
  Stem stem = Stem::imagenet;
  bool bottleneck = false;
  std::size_t embedding = 64;       ///< channels after the stem
  std::vector<std::size_t> hidden;  ///< channels after each stage; multiples of 4 if bottleneck is set
  std::vector<std::size_t> depths;  ///< blocks per stage
  bool downsample_in_first_stage = false;
  bool downsample_in_bottleneck = false;  ///< the first 1 x 1 convolution of a bottleneck has the stride, instead of
                                          ///< the 3 x 3
  std::size_t labels = 1000;
  std::vector<float> mean, deviation;  ///< per channel, for pixels in [0, 1]
  float label_smoothing = 0.0f;

  std::size_t pixels() const { return height * width; }
};

/// Returns resnet18, resnet34, resnet50, resnet101 or resnet152 with torchvision's sizes, for 224 x 224 images
/// normalised as for ImageNet and 1000 labels; nullopt for any other name.
std::optional<ResnetShape> known_resnet(std::string_view name);
/// Names that known_resnet accepts.
inline constexpr std::array known_resnets{"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"};

/// Mean and standard deviation of the pixels of ImageNet's training images.
inline constexpr std::array imagenet_mean{0.485f, 0.456f, 0.406f}, imagenet_deviation{0.229f, 0.224f, 0.225f};

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
