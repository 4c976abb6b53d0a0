#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/images/image_set.hpp"
#include "data/images/resize.hpp"

/// Transforms an image into a square of pixels, the input of a network. All computations are on bytes.
namespace mylos::data {

enum class Augmentation {
  none,       ///< for evaluation
  crop_flip,  ///< for CIFAR: pad by 4 zeros on each side, random crop, random flip
  imagenet,   ///< random crop of 8 to 100 % of the area with aspect ratio 3/4 to 4/3, resize, random flip
};

struct TransformOptions {
  std::size_t size = 224;  ///< height and width of the square
  /// Without augmentation, the shorter side is resized to size / crop_fraction, and the centre is cropped.
  double crop_fraction = 0.875;
  bool warps = false;  ///< resizes both sides to that length instead, without keeping the aspect ratio
  Resampling resampling = Resampling::bilinear;
  Augmentation augmentation = Augmentation::none;
};

/// The only inputs of the random choices, which are therefore the same in every launch.
struct AugmentationKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;   ///< step, or epoch: a new value gives new choices
  std::uint64_t image = 0;  ///< index in the data set
};

/// Returns 1 if all images have the shape size x size, and so need no resizing. Otherwise returns 0.875, as in
/// torchvision's recipes.
double default_crop_fraction(const ImageSet& set, std::size_t size);

/// Returns the random crop of `imagenet`. After 10 failed tries, it is the centre with its aspect ratio clamped.
Region random_part(const AugmentationKey& key, std::size_t height, std::size_t width);
/// True if the image is flipped horizontally.
bool is_flipped(const AugmentationKey& key);

/// Decodes image key.image of `set` and writes it to `target` as size x size x channels bytes. Augmentations that need
/// an input of that size (crop_flip) resize the shorter side and crop the centre first. Throws as ImageSet::decode
/// does, and std::invalid_argument if `target` has another length.
void transform_image(const ImageSet& set, const TransformOptions& options, const AugmentationKey& key,
                     std::span<std::uint8_t> target);

/// Returns the number of channels that transform_image writes.
std::size_t channels_of(const ImageSet& set);

}  // namespace mylos::data
