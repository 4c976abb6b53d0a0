#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

#include <cstdint>

/// Pixels as files have them, made ready for a network.
namespace mylos {

/// Channels that an image may have.
inline constexpr std::size_t most_pixel_channels = 4;

/// Mean and deviation of each channel, of values in [0, 1].
struct PixelNormalization {
  std::size_t channels = 0;
  float mean[most_pixel_channels] = {};
  float deviation[most_pixel_channels] = {};
};

/// y (R, C) = (pixels / 255 - mean) / deviation for pixels (R * C), as torchvision computes it. Elementwise.
template <class T>
void normalize_pixels(const ExecutionSpace& space, const PixelNormalization& normalization,
                      const ConstVector<std::uint8_t>& pixels, const Matrix<T>& y);

}  // namespace mylos
