#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/images/image_set.hpp"
#include "data/images/resize.hpp"

/// How an image becomes a square of pixels: an input of a network. All is done in bytes.
namespace mylos::data {

enum class Augmentation {
  none,       ///< as in evaluation
  crop_flip,  ///< 4 zeros at each side, a random crop, a random flip: CIFAR's
  imagenet,   ///< a random part of 8 to 100 % of the area and of ratio 3/4 to 4/3, resized, a random flip
};

struct TransformOptions {
  std::size_t size = 224;  ///< height and width of the square
  /// Without augmentation the shorter side becomes size / crop_fraction, and the centre is cut out.
  double crop_fraction = 0.875;
  bool warps = false;  ///< both sides become that long instead, whatever the ratio
  Resampling resampling = Resampling::bilinear;
  Augmentation augmentation = Augmentation::none;
};

/// What random choices depend on, and nothing else: the same on every launch.
struct AugmentationKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;   ///< or epoch: whatever draws anew
  std::uint64_t image = 0;  ///< its number in the data set
};

/// 1 where all images have the shape size x size, and so stay as they are; else 0.875, as torchvision's recipes have
/// it.
double default_crop_fraction(const ImageSet& set, std::size_t size);

/// The part of an image that `imagenet` draws: 10 tries, then the centre with the ratio brought into its bounds.
Region random_part(const AugmentationKey& key, std::size_t height, std::size_t width);
/// Whether the image is mirrored.
bool is_flipped(const AugmentationKey& key);

/// Decodes image key.image of `set` and writes it as size x size x channels bytes to `target`. Augmentations that need
/// a square of that size (crop_flip) take one cut from the centre after the shorter side was resized. Throws as
/// ImageSet::decode, and std::invalid_argument where `target` has another length.
void transform_image(const ImageSet& set, const TransformOptions& options, const AugmentationKey& key,
                     std::span<std::uint8_t> target);

/// Channels of what transform_image writes.
std::size_t channels_of(const ImageSet& set);

}  // namespace mylos::data
