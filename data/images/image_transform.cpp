#include "data/images/image_transform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/random.hpp"

namespace mylos::data {
namespace {

constexpr std::size_t padding = 4;
constexpr int part_tries = 10;
constexpr double least_area = 0.08;
constexpr double least_ratio = 3.0 / 4.0, largest_ratio = 4.0 / 3.0;

/// The random choices per image. The values differ from all sites of dropout, which are smaller.
enum class Draw : std::uint64_t { flip = 0, offset = 1, part = 2 };

RandomWords draw(const AugmentationKey& key, Draw what, std::uint64_t attempt = 0) {
  const DropoutKey mixed{.seed = key.seed, .step = key.step};
  constexpr std::uint64_t site = std::uint64_t{0xffff} << 48;
  return philox(mixed.philox_key(), key.image, site | static_cast<std::uint64_t>(what) << 32 | attempt);
}

/// Returns an integer in [0, bound), for bounds below 2^32.
std::size_t integer_below(std::size_t bound, std::uint32_t word) { return std::uint64_t{word} * bound >> 32; }

/// Rounds as Python does: halves to even.
std::size_t rounded(double value) { return static_cast<std::size_t>(std::nearbyint(value)); }

Region centre(std::size_t height, std::size_t width, std::size_t part_height, std::size_t part_width) {
  return {(height - part_height) / 2, (width - part_width) / 2, part_height, part_width};
}

/// Resizes the shorter side, or with `warps` both sides, to `shorter` and crops the central square: torchvision's
/// Resize and CenterCrop.
Image centre_square(const Image& image, const TransformOptions& options, std::size_t shorter) {
  const std::size_t size = options.size;
  const std::size_t height = image.shape.height, width = image.shape.width;
  const auto longer = [&](std::size_t side, std::size_t other) { return shorter * side / other; };
  const std::size_t resized_height = height <= width || options.warps ? shorter : longer(height, width);
  const std::size_t resized_width = width <= height || options.warps ? shorter : longer(width, height);
  const auto begin = [&](std::size_t side) { return rounded(static_cast<double>(side - size) / 2.0); };
  return resize(image, resized_height, resized_width, {begin(resized_height), begin(resized_width), size, size},
                options.resampling);
}

/// Returns the window of size x size at (top, left) of the zero-padded image.
Image padded_window(const Image& image, std::size_t top, std::size_t left, std::size_t size) {
  const std::size_t channels = image.shape.channels;
  Image window{{size, size, channels}, std::vector<std::uint8_t>(size * size * channels)};
  const std::size_t first = left < padding ? padding - left : 0;  // columns before this are padding
  const std::size_t last = std::min(size, image.shape.width + padding - left);
  for (std::size_t y = 0; y < size; ++y) {
    const std::size_t row = top + y;
    if (row < padding || row >= image.shape.height + padding || first >= last) continue;
    const std::uint8_t* source = image.row(row - padding) + (left + first - padding) * channels;
    std::copy_n(source, (last - first) * channels, window.row(y) + first * channels);
  }
  return window;
}

void mirror(Image& image) {
  const std::size_t channels = image.shape.channels;
  for (std::size_t y = 0; y < image.shape.height; ++y) {
    std::uint8_t* row = image.row(y);
    for (std::size_t left = 0, right = image.shape.width - 1; left < right; ++left, --right) {
      std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
    }
  }
}

Image augment(const ImageSet& set, const TransformOptions& options, const AugmentationKey& key) {
  const std::size_t size = options.size;
  switch (options.augmentation) {
    case Augmentation::crop_flip: {
      const Image square = centre_square(set.decode(key.image), options, size);
      const RandomWords words = draw(key, Draw::offset);
      const std::size_t locations = 2 * padding + 1;
      return padded_window(square, integer_below(locations, words.word[0]), integer_below(locations, words.word[1]),
                           size);
    }
    case Augmentation::imagenet: {
      const auto choose = [&](std::size_t height, std::size_t width) { return random_part(key, height, width); };
      return resize(set.decode(key.image, choose), size, size, options.resampling);
    }
    default: {
      const auto shorter = static_cast<std::size_t>(static_cast<double>(size) / options.crop_fraction);
      return centre_square(set.decode(key.image), options, shorter);
    }
  }
}

}  // namespace

double default_crop_fraction(const ImageSet& set, std::size_t size) {
  const auto& shape = set.shape();
  return shape && shape->height == size && shape->width == size ? 1.0 : 0.875;
}

Region random_part(const AugmentationKey& key, std::size_t height, std::size_t width) {
  const double area = static_cast<double>(height) * static_cast<double>(width);
  for (int attempt = 0; attempt < part_tries; ++attempt) {
    const RandomWords words = draw(key, Draw::part, static_cast<std::uint64_t>(attempt));
    const double part = area * (least_area + (1.0 - least_area) * static_cast<double>(uniform(words.word[0])));
    const double low = std::log(least_ratio), high = std::log(largest_ratio);
    const double ratio = std::exp(low + (high - low) * static_cast<double>(uniform(words.word[1])));
    const std::size_t part_width = rounded(std::sqrt(part * ratio)), part_height = rounded(std::sqrt(part / ratio));
    if (part_width == 0 || part_height == 0 || part_width > width || part_height > height) continue;
    return {integer_below(height - part_height + 1, words.word[2]),
            integer_below(width - part_width + 1, words.word[3]), part_height, part_width};
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  if (ratio < least_ratio) {
    const auto part_height = std::min(height, rounded(static_cast<double>(width) / least_ratio));
    return centre(height, width, part_height, width);
  }
  if (ratio > largest_ratio) {
    const auto part_width = std::min(width, rounded(static_cast<double>(height) * largest_ratio));
    return centre(height, width, height, part_width);
  }
  return {0, 0, height, width};
}

bool is_flipped(const AugmentationKey& key) { return (draw(key, Draw::flip).word[0] >> 31) != 0; }

void transform_image(const ImageSet& set, const TransformOptions& options, const AugmentationKey& key,
                     std::span<std::uint8_t> target) {
  require(options.size > 0 && options.crop_fraction > 0.0 && options.crop_fraction <= 1.0,
          "a size above 0 and a crop fraction in (0, 1]");
  Image image = augment(set, options, key);
  if (options.augmentation != Augmentation::none && is_flipped(key)) mirror(image);
  require(target.size() == image.pixels.size(), "an array of size x size x channels bytes");
  std::ranges::copy(image.pixels, target.begin());
}

std::size_t channels_of(const ImageSet& set) { return set.shape() ? set.shape()->channels : 3; }

}  // namespace mylos::data
