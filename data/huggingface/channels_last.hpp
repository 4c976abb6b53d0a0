#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "data/huggingface/pretrained.hpp"

/// Layouts of convolution weights. Files use PyTorch's order (out, in, height, width); kernels read (out, height,
/// width, in). A range of whole output channels is the same range in both.
namespace mylos::data {

/// The dimensions of a convolution's weights.
struct ConvolutionSizes {
  std::size_t out = 0, in = 0, height = 0, width = 0;

  /// Returns the number of elements per output channel.
  std::size_t channel() const { return in * height * width; }
};

/// Returns the dimensions of weights whose shape in memory is (out, height, width, in). Throws std::invalid_argument
/// unless `shape` has four dimensions.
ConvolutionSizes channels_last_sizes(std::span<const std::size_t> shape);

/// Returns a reader that presents a tensor of shape (out, in, height, width) as (out, height, width, in). It reads only
/// the whole output channels that cover the requested range.
TensorReader read_channels_last(TensorReader read, const ConvolutionSizes& sizes);

/// Converts a stream of values from (out, height, width, in) to (out, in, height, width).
class ChannelsFirst {
 public:
  using Take = std::function<void(std::span<const float> values)>;

  explicit ChannelsFirst(const ConvolutionSizes& sizes) : sizes_(sizes) {}
  /// Passes each completed output channel to `take`.
  void write(std::span<const float> values, const Take& take);

 private:
  ConvolutionSizes sizes_;
  std::vector<float> channel_, turned_;
};

}  // namespace mylos::data
