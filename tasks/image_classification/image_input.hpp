#pragma once

#include "data/huggingface/image_processor.hpp"
#include "data/images/image_set.hpp"
#include "data/images/image_transform.hpp"
#include "tasks/image_classification/image_config.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// How images become what a model sees.
namespace mylos::tasks {

struct ImageInput {
  std::size_t size = 224;              ///< height and width in pixels
  std::size_t channels = 3;            ///< that the model reads
  std::vector<float> mean, deviation;  ///< (channels) in values from 0 to 1
  double crop_fraction = 0.875;        ///< of the shorter side that is cut out

  bool warps = false;  ///< images become squares, whatever their ratio, before that
  data::Resampling resampling = data::Resampling::bilinear;

  bool operator==(const ImageInput&) const = default;
};

/// How images become that input where they are not augmented.
data::TransformOptions transform_options(const ImageInput& input);

/// Which size comes first where nothing is said: that of images that are all as large, or that of the model's
/// directory.
enum class PreferredSize { data, model };

/// Takes what `config` says, else what the model's directory does, else what fits the data. `set` is null where no data
/// are known yet. Errors: std::runtime_error where a mean has another number of channels than the model, or where the
/// stem's first convolution is larger than the image.
ImageInput resolve_input(const ImageConfig& config, const std::optional<data::ImageProcessor>& processor,
                         const data::ImageSet* set, std::size_t channels, PreferredSize preferred);

/// Errors: std::runtime_error where images of `size` pixels are smaller than the first convolution of the stem.
void check_size_for_stem(std::size_t size, data::ResnetStem stem);

/// Turns `pixels` of `from` channels into `to`: grey is repeated, colours become grey as Pillow's convert("L") makes
/// it. The channels of a pixel stand side by side.
std::vector<std::uint8_t> convert_channels(std::span<const std::uint8_t> pixels, std::size_t from, std::size_t to);

}  // namespace mylos::tasks
