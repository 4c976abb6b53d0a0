#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace mylos::data {

/// The dimensions of an image in pixels. Pixels are stored row by row, with their channels interleaved (HWC).
struct ImageShape {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;  ///< 3: red, green, blue; 1: grey

  std::size_t size() const { return height * width * channels; }
  bool operator==(const ImageShape&) const = default;
};

/// A decoded image.
struct Image {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;  ///< shape.size() values

  const std::uint8_t* row(std::size_t y) const { return pixels.data() + y * shape.width * shape.channels; }
  std::uint8_t* row(std::size_t y) { return pixels.data() + y * shape.width * shape.channels; }
};

/// A rectangle of pixels.
struct Region {
  std::size_t top = 0;
  std::size_t left = 0;
  std::size_t height = 0;
  std::size_t width = 0;

  bool operator==(const Region&) const = default;
};

/// Selects the region of an image to decode, given its height and width. Empty: the whole image.
using ChooseRegion = std::function<Region(std::size_t height, std::size_t width)>;

/// The maximum number of pixels in an image. Pillow refuses more as a decompression bomb.
inline constexpr std::size_t most_pixels = 178956970;

/// Throws std::runtime_error, with the sizes but without a file name, if an image has no pixels or too many.
void check_image_size(std::size_t height, std::size_t width);

/// Returns the chosen region of an image of this size. Throws std::invalid_argument if it is empty or outside.
Region chosen_region(const ChooseRegion& choose, std::size_t height, std::size_t width);

/// Copies a region of an image, which must lie inside it.
Image crop(const Image& image, const Region& region);

}  // namespace mylos::data
