#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

/// The images that a classifier reads.
namespace mylos::families {

/// The first layers of a network.
enum class ImageStem {
  imagenet,  ///< 7 x 7 convolution with stride 2, then 3 x 3 max pooling with stride 2
  cifar,     ///< 3 x 3 convolution with stride 1, no pooling
};

/// Returns "imagenet" or "cifar".
std::string_view to_string(ImageStem stem);

/// The images that a network reads. Mean and deviation are per channel, for pixels in [0, 1].
struct ImageFormat {
  std::size_t height = 224, width = 224;
  std::vector<float> mean = {0.485f, 0.456f, 0.406f}, deviation = {0.229f, 0.224f, 0.225f};

  bool operator==(const ImageFormat&) const = default;
};

}  // namespace mylos::families
