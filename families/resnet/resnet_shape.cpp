#include "families/resnet/resnet_shape.hpp"

#include "core/base/error.hpp"
#include "core/kernels/pooling.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::families {
namespace {

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
  if (shape.stem == ImageStem::cifar) return size;
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

}  // namespace

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
  require(shape.embedding > 0, "ResNet: 0 channels behind the stem");
  require(
      shape.channels > 0 && shape.channels <= most_pixel_channels && shape.mean.size() == shape.channels &&
          shape.deviation.size() == shape.channels,
      fmt::format("ResNet: images of {} channels, {} means and {} deviations; give one of each for up to {} channels",
                  shape.channels, shape.mean.size(), shape.deviation.size(), most_pixel_channels));
  require(std::ranges::all_of(shape.deviation, [](float value) { return value > 0.0f; }),
          "ResNet: a deviation of pixels is not above 0");
  require(shape.height > 0 && shape.width > 0,
          fmt::format("ResNet: images of {} x {} pixels are too small", shape.height, shape.width));
}

ConvolutionShape stem_convolution(const ResnetShape& shape) {
  const ImageSize image{shape.height, shape.width, shape.channels};
  return shape.stem == ImageStem::imagenet ? convolution(image, shape.embedding, 7, 2)
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
