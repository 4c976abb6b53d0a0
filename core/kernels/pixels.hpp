#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

#include <cstdint>

/// Conversion of pixels as stored in files to a network's input.
namespace mylos {

/// Maximum number of channels of an image.
inline constexpr std::size_t most_pixel_channels = 4;

/// Mean and standard deviation per channel, for values in [0, 1].
struct PixelNormalization {
  std::size_t channels = 0;
  float mean[most_pixel_channels] = {};
  float deviation[most_pixel_channels] = {};
};

/// y (R, C) = (pixels / 255 - mean) / deviation for pixels (R * C), as computed by torchvision. Elementwise.
template <class T>
void normalize_pixels(const ExecutionSpace& space, const PixelNormalization& normalization,
                      const ConstVector<std::uint8_t>& pixels, const Matrix<T>& y);

}  // namespace mylos
