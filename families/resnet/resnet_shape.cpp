#include "families/resnet/resnet_shape.hpp"

#include "core/base/error.hpp"
#include "core/kernels/pooling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mylos::families {
namespace {

/// Channels of a bottleneck's result per inner channel.
constexpr std::size_t bottleneck_reduction = 4;

/// The size of a block's input.
struct ImageSize {
  std::size_t height, width, channels;
};

ImageSize result_of(const ConvolutionShape& shape) { return {shape.out_height(), shape.out_width(), shape.out}; }

ConvolutionShape convolution(const ImageSize& image, std::size_t out, std::size_t kernel, std::size_t stride) {
  return {image.height, image.width, image.channels, out, kernel, kernel, stride, kernel / 2};
}

ImageSize stem_result(const ResnetShape& shape) {
  const ImageSize size = result_of(stem_convolution(shape));
  if (shape.stem == ResnetShape::Stem::cifar) return size;
  const PoolingShape pooling{size.height, size.width};
  return {pooling.out_height(), pooling.out_width(), size.channels};
}

ResnetBlockShape block_shape(const ResnetShape& shape, const ImageSize& image, std::size_t out, std::size_t stride) {
  ResnetBlockShape block;
  const auto add = [&](std::size_t channels, std::size_t kernel, std::size_t step) {
    const ImageSize size = block.layers.empty() ? image : result_of(block.last());
    block.layers.push_back(convolution(size, channels, kernel, step));
  };
  if (shape.bottleneck) {
    const std::size_t inner = out / bottleneck_reduction, first = shape.downsample_in_bottleneck ? stride : 1;
    add(inner, 1, first);
    add(inner, 3, stride / first);
    add(out, 1, 1);
  } else {
    add(out, 3, stride);
    add(out, 3, 1);
  }
  if (image.channels != out || stride != 1) block.shortcut = convolution(image, out, 1, stride);
  return block;
}

ResnetShape torchvision_shape(bool bottleneck, std::vector<std::size_t> depths) {
  ResnetShape shape;
  shape.bottleneck = bottleneck;
  shape.hidden = {64, 128, 256, 512};
  if (bottleneck) {
    for (std::size_t& channels : shape.hidden) channels *= bottleneck_reduction;
  }
  shape.depths = std::move(depths);
  shape.mean.assign(imagenet_mean.begin(), imagenet_mean.end());
  shape.deviation.assign(imagenet_deviation.begin(), imagenet_deviation.end());
  return shape;
}

}  // namespace

std::optional<ResnetShape> known_resnet(std::string_view name) {
  if (name == "resnet18") return torchvision_shape(false, {2, 2, 2, 2});
  if (name == "resnet34") return torchvision_shape(false, {3, 4, 6, 3});
  if (name == "resnet50") return torchvision_shape(true, {3, 4, 6, 3});
  if (name == "resnet101") return torchvision_shape(true, {3, 4, 23, 3});
  if (name == "resnet152") return torchvision_shape(true, {3, 8, 36, 3});
  return std::nullopt;
}

void check_shape(const ResnetShape& shape) {
  require(!shape.hidden.empty() && shape.hidden.size() == shape.depths.size(),
          fmt::format("ResNet: {} stages have channels and {} have depths", shape.hidden.size(), shape.depths.size()));
  for (std::size_t stage = 0; stage < shape.hidden.size(); ++stage) {
    const std::size_t channels = shape.hidden[stage];
    require(shape.depths[stage] > 0, fmt::format("ResNet: stage {} has no blocks", stage));
    require(channels > 0 && (!shape.bottleneck || channels % bottleneck_reduction == 0),
            fmt::format("ResNet: the {} channels of stage {} are not a multiple of {}", channels, stage,
                        shape.bottleneck ? bottleneck_reduction : 1));
  }
  require(shape.embedding > 0 && shape.labels > 0,
          fmt::format("ResNet: {} channels behind the stem and {} labels", shape.embedding, shape.labels));
  require(
      shape.channels > 0 && shape.channels <= most_pixel_channels && shape.mean.size() == shape.channels &&
          shape.deviation.size() == shape.channels,
      fmt::format("ResNet: images of {} channels, {} means and {} deviations; give one of each for up to {} channels",
                  shape.channels, shape.mean.size(), shape.deviation.size(), most_pixel_channels));
  require(std::ranges::all_of(shape.deviation, [](float value) { return value > 0.0f; }),
          "ResNet: a deviation of pixels is not above 0");
  require(shape.label_smoothing >= 0.0f && shape.label_smoothing < 1.0f,
          fmt::format("ResNet: label smoothing {} is not in [0, 1)", shape.label_smoothing));
  require(shape.height > 0 && shape.width > 0,
          fmt::format("ResNet: images of {} x {} pixels are too small", shape.height, shape.width));
}

ConvolutionShape stem_convolution(const ResnetShape& shape) {
  const ImageSize image{shape.height, shape.width, shape.channels};
  return shape.stem == ResnetShape::Stem::imagenet ? convolution(image, shape.embedding, 7, 2)
                                                   : convolution(image, shape.embedding, 3, 1);
}

std::vector<std::vector<ResnetBlockShape>> resnet_stages(const ResnetShape& shape) {
  std::vector<std::vector<ResnetBlockShape>> stages;
  ImageSize image = stem_result(shape);
  for (std::size_t stage = 0; stage < shape.hidden.size(); ++stage) {
    std::vector<ResnetBlockShape>& blocks = stages.emplace_back();
    for (std::size_t block = 0; block < shape.depths[stage]; ++block) {
      const bool shrinks = block == 0 && (stage > 0 || shape.downsample_in_first_stage);
      blocks.push_back(block_shape(shape, image, shape.hidden[stage], shrinks ? 2 : 1));
      image = result_of(blocks.back().last());
    }
  }
  return stages;
}

PixelNormalization pixel_normalization(const ResnetShape& shape) {
  PixelNormalization normalization{.channels = shape.channels};
  std::ranges::copy(shape.mean, normalization.mean);
  std::ranges::copy(shape.deviation, normalization.deviation);
  return normalization;
}

}  // namespace mylos::families
