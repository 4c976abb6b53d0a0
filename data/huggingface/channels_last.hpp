#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "data/huggingface/pretrained.hpp"

/// Convolution weights: files have PyTorch's order (out, in, height, width), kernels read (out, height, width, in). A
/// range of whole output channels is the same range in both.
namespace mylos::data {

/// The sizes of a convolution's weights.
struct ConvolutionSizes {
  std::size_t out = 0, in = 0, height = 0, width = 0;

  /// Elements of an output channel.
  std::size_t channel() const { return in * height * width; }
};

/// The sizes of weights whose shape in memory is (out, height, width, in). Throws std::invalid_argument where it has
/// not four dimensions.
ConvolutionSizes channels_last_sizes(std::span<const std::size_t> shape);

/// Reads a tensor of (out, in, height, width) as (out, height, width, in): whole output channels of it, the least that
/// hold what is asked for.
TensorReader read_channels_last(TensorReader read, const ConvolutionSizes& sizes);

/// Turns values of (out, height, width, in), which come piece by piece, into those of (out, in, height, width).
class ChannelsFirst {
 public:
  using Take = std::function<void(std::span<const float> values)>;

  explicit ChannelsFirst(const ConvolutionSizes& sizes) : sizes_(sizes) {}
  /// Gives `take` each output channel that is complete.
  void write(std::span<const float> values, const Take& take);

 private:
  ConvolutionSizes sizes_;
  std::vector<float> channel_, turned_;
};

}  // namespace mylos::data
