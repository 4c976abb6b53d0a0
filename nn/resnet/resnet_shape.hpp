#pragma once

#include "core/kernels/convolution_shape.hpp"
#include "core/kernels/pixels.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

/// The sizes of a ResNet (He et al. 2015), with torchvision's and Hugging Face's variants.
namespace mylos::nn {

struct ResnetShape {
  enum class Stem {
    imagenet,  ///< 7 x 7 with stride 2, then max pooling 3 x 3 with stride 2
    cifar,     ///< 3 x 3, without pooling
  };

  std::size_t height = 224, width = 224, channels = 3;  ///< of the images
  Stem stem = Stem::imagenet;
  bool bottleneck = false;
  std::size_t embedding = 64;       ///< channels of the stem's result
  std::vector<std::size_t> hidden;  ///< channels of each stage's result; with bottleneck multiples of 4
  std::vector<std::size_t> depths;  ///< blocks of each stage
  bool downsample_in_first_stage = false;
  bool downsample_in_bottleneck = false;  ///< a bottleneck's stride is that of its first 1 x 1, not of its 3 x 3
  std::size_t labels = 1000;
  std::vector<float> mean, deviation;  ///< of pixels in [0, 1], one for each channel
  float label_smoothing = 0.0f;

  std::size_t pixels() const { return height * width; }
};

/// resnet18, resnet34, resnet50, resnet101 and resnet152 with torchvision's sizes, for 224 x 224 images of ImageNet's
/// colours and 1000 labels; nullopt for any other name.
std::optional<ResnetShape> known_resnet(std::string_view name);
/// The names that it knows.
inline constexpr std::array known_resnets{"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"};

/// Mean and deviation of ImageNet's training images.
inline constexpr std::array imagenet_mean{0.485f, 0.456f, 0.406f}, imagenet_deviation{0.229f, 0.224f, 0.225f};

/// Errors: std::invalid_argument for a shape whose parts do not fit, and for images that are too small for it.
void check_shape(const ResnetShape& shape);

/// The convolutions of a block, in order, and of its shortcut where that is not the identity.
struct ResnetBlockShape {
  std::vector<ConvolutionShape> layers;
  std::optional<ConvolutionShape> shortcut;

  const ConvolutionShape& last() const { return layers.back(); }
};

ConvolutionShape stem_convolution(const ResnetShape& shape);
/// The blocks of each stage. Height and width of each stage follow from the images.
std::vector<std::vector<ResnetBlockShape>> resnet_stages(const ResnetShape& shape);

PixelNormalization pixel_normalization(const ResnetShape& shape);

}  // namespace mylos::nn
