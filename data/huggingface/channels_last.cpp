#include "data/huggingface/channels_last.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"

namespace mylos::data {
namespace {

/// Writes the transpose of source (rows, columns) to target (columns, rows).
void transpose(std::span<const float> source, std::size_t rows, std::size_t columns, std::span<float> target) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      target[column * rows + row] = source[row * columns + column];
    }
  }
}

}  // namespace

ConvolutionSizes channels_last_sizes(std::span<const std::size_t> shape) {
  require(shape.size() == 4, fmt::format("convolution weights have 4 dimensions, not {}", shape.size()));
  return {.out = shape[0], .in = shape[3], .height = shape[1], .width = shape[2]};
}

TensorReader read_channels_last(TensorReader read, const ConvolutionSizes& sizes) {
  const std::size_t pixels = sizes.height * sizes.width;
  if (pixels == 1 || sizes.in == 1) return read;
  return [read = std::move(read), sizes, pixels](std::size_t first, std::span<float> values) {
    const std::size_t channel = sizes.channel();
    std::vector<float> source(channel), turned(channel);
    for (std::size_t done = 0; done < values.size();) {
      const std::size_t begin = (first + done) % channel;
      const std::size_t count = std::min(values.size() - done, channel - begin);
      read(first + done - begin, source);
      transpose(source, sizes.in, pixels, turned);
      std::copy_n(turned.begin() + static_cast<std::ptrdiff_t>(begin), count,
                  values.begin() + static_cast<std::ptrdiff_t>(done));
      done += count;
    }
  };
}

void ChannelsFirst::write(std::span<const float> values, const Take& take) {
  const std::size_t channel = sizes_.channel();
  while (!values.empty()) {
    const std::size_t count = std::min(values.size(), channel - channel_.size());
    channel_.insert(channel_.end(), values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
    values = values.subspan(count);
    if (channel_.size() < channel) continue;
    turned_.resize(channel);
    transpose(channel_, sizes_.height * sizes_.width, sizes_.in, turned_);
    take(turned_);
    channel_.clear();
  }
}

}  // namespace mylos::data
