#include "data/images/image.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"

namespace mylos::data {

void check_image_size(std::size_t height, std::size_t width) {
  ensure(height > 0 && width > 0, fmt::format("has no pixels: {} x {}", height, width));
  if (height <= most_pixels / width) return;
  fail(fmt::format("says that it has {} x {} pixels; {} are the most that are read", height, width, most_pixels));
}

Region chosen_region(const ChooseRegion& choose, std::size_t height, std::size_t width) {
  if (!choose) return {0, 0, height, width};
  const Region region = choose(height, width);
  const bool is_inside = region.height > 0 && region.width > 0 && region.height <= height && region.width <= width &&
                         region.top <= height - region.height && region.left <= width - region.width;
  if (!is_inside) {
    require(false, fmt::format("a region of {} x {} pixels at ({}, {}) is not inside an image of {} x {}",
                               region.height, region.width, region.top, region.left, height, width));
  }
  return region;
}

Image crop(const Image& image, const Region& region) {
  const ImageShape& shape = image.shape;
  chosen_region([&](std::size_t, std::size_t) { return region; }, shape.height, shape.width);
  Image part{{region.height, region.width, shape.channels}, {}};
  part.pixels.reserve(part.shape.size());
  for (std::size_t y = 0; y < region.height; ++y) {
    const std::uint8_t* begin = image.row(region.top + y) + region.left * shape.channels;
    part.pixels.insert(part.pixels.end(), begin, begin + region.width * shape.channels);
  }
  return part;
}

}  // namespace mylos::data
