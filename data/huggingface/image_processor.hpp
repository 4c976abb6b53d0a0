#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include "core/base/python_json.hpp"

/// How a model's images are prepared, as Hugging Face's preprocessor_config.json says it.
namespace mylos::data {

inline constexpr const char* image_processor_file = "preprocessor_config.json";

/// Pixels of a side of what a model sees, at the most.
inline constexpr std::size_t largest_image_side = 16384;

struct ImageProcessor {
  std::vector<float> mean = {};              ///< of a channel, in values from 0 to 1; empty: the file does not say
  std::vector<float> deviation = {};         ///< likewise, above 0
  std::optional<std::size_t> size = {};      ///< of the square that the model sees, in pixels
  std::optional<double> crop_fraction = {};  ///< of the shorter side that is cut out: crop_pct

  bool warps = false;       ///< images become squares, whatever their ratio, before that
  bool is_bicubic = false;  ///< how they are resized; false: bilinearly

  bool operator==(const ImageProcessor&) const = default;
};

/// Reads preprocessor_config.json of a model's directory, or what timm's config.json says in pretrained_cfg. Empty
/// where there is neither. Throws std::runtime_error naming the file and the key of what is not supported.
std::optional<ImageProcessor> read_image_processor(const std::filesystem::path& directory);

/// The shortest decimals that read as the same floats: 0.1307 where the float itself is 0.1307000070810318.
std::vector<double> shortest_decimals(const std::vector<float>& values);

/// The preprocessor_config.json by which transformers prepares images as this says: the shorter side (both, where it
/// warps) becomes size / crop_fraction, the centre is cut out, and pixels are scaled to 0 to 1 and normalised. The
/// class that it names is one that does so: ConvNext's does not crop to 384 pixels and more.
OrderedJson image_processor_json(const ImageProcessor& processor);

}  // namespace mylos::data
