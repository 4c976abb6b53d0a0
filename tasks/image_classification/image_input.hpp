#pragma once

#include "data/huggingface/image_processor.hpp"
#include "data/images/image_set.hpp"
#include "data/images/image_transform.hpp"
#include "families/interface/image_format.hpp"
#include "tasks/image_classification/image_config.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Converts images to the input of a model.
namespace mylos::tasks {

struct ImageInput {
  std::size_t size = 224;              ///< height and width in pixels
  std::size_t channels = 3;            ///< channels that the model reads
  std::vector<float> mean, deviation;  ///< (channels) for values from 0 to 1
  double crop_fraction = 0.875;        ///< crop, as a fraction of the shorter side

  bool warps = false;  ///< before the crop, images are resized to squares whatever their aspect ratio
  data::Resampling resampling = data::Resampling::bilinear;

  bool operator==(const ImageInput&) const = default;
};

/// Returns the transform that produces this input without augmentation.
data::TransformOptions transform_options(const ImageInput& input);

/// Selects the size that takes precedence by default: that of the data if all images have the same size, or that of the
/// model's directory.
enum class PreferredSize { data, model };

/// Resolves the input from `config`, else from the model's directory, else from the data. `set` is null if no data are
/// known yet. Errors: std::runtime_error if a mean has another number of channels than the model, or if the first
/// convolution of the stem is larger than the image.
ImageInput resolve_input(const ImageConfig& config, const std::optional<data::ImageProcessor>& processor,
                         const data::ImageSet* set, std::size_t channels, PreferredSize preferred);

/// Errors: std::runtime_error if images of `size` pixels are smaller than the stem's first convolution.
void check_size_for_stem(std::size_t size, families::ImageStem stem);

/// Converts interleaved `pixels` from `from` channels to `to`: grey is repeated; colours become grey as in Pillow's
/// convert("L").
std::vector<std::uint8_t> convert_channels(std::span<const std::uint8_t> pixels, std::size_t from, std::size_t to);

}  // namespace mylos::tasks
