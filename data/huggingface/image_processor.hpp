#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include "core/base/files/file_reader.hpp"
#include "core/base/text/python_json.hpp"

/// The preparation of a model's images, as described by Hugging Face's preprocessor_config.json.
namespace mylos::data {

inline constexpr const char* image_processor_file = "preprocessor_config.json";

/// The largest supported height and width of an input image, in pixels.
inline constexpr std::size_t largest_image_side = 16384;

struct ImageProcessor {
  std::vector<float> mean = {};              ///< per channel, for values from 0 to 1; empty if not in the file
  std::vector<float> deviation = {};         ///< likewise, each above 0
  std::optional<std::size_t> size = {};      ///< height and width of the input square, in pixels
  std::optional<double> crop_fraction = {};  ///< crop_pct: the fraction of the shorter side that is kept

  bool warps = false;       ///< resizes images to a square before that, without keeping the aspect ratio
  bool is_bicubic = false;  ///< bicubic resampling; false: bilinear

  bool operator==(const ImageProcessor&) const = default;
};

/// Reads preprocessor_config.json of a model directory, or pretrained_cfg in timm's config.json. Returns nullopt if
/// there is neither. Throws std::runtime_error with the file and the key if something is not supported.
std::optional<ImageProcessor> read_image_processor(const FileReader& files, const std::filesystem::path& directory);

/// Returns the preprocessor_config.json with which transformers prepares images in the same way: it resizes the shorter
/// side (with `warps`, both sides) to size / crop_fraction, crops the centre, scales pixels to the range 0 to 1 and
/// normalises them. The image processor class named in it is one that does all of this: ConvNext's does not crop at 384
/// pixels or more.
OrderedJson image_processor_json(const ImageProcessor& processor);

}  // namespace mylos::data
