#include "tasks/image_classification/image_input.hpp"

#include "core/base/error.hpp"
#include "core/base/text/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace mylos::tasks {
namespace {

constexpr std::size_t usual_size = 224;

struct Statistics {
  std::vector<float> mean, deviation;
};

/// Returns the statistics used by common recipes: those of MNIST or CIFAR for these data, else those of ImageNet.
Statistics usual_statistics(const data::ImageSet* set) {
  const Statistics imagenet{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  if (set == nullptr || !set->shape()) return imagenet;
  if (set->shape()->channels == 1) return {{0.1307f}, {0.3081f}};
  constexpr data::ImageShape cifar{32, 32, 3};
  if (*set->shape() != cifar) return imagenet;
  if (set->label_names().size() == 100) return {{0.5071f, 0.4865f, 0.4409f}, {0.2673f, 0.2564f, 0.2762f}};
  return {{0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}};
}

/// Expands `values` to `channels` values: a single value is repeated, and grey gets the mean of three.
std::vector<float> of_channels(std::vector<float> values, std::size_t channels) {
  if (values.size() == channels) return values;
  if (values.size() == 1) return std::vector<float>(channels, values.front());
  const float sum = std::accumulate(values.begin(), values.end(), 0.0f);
  return std::vector<float>(channels, sum / static_cast<float>(values.size()));
}

std::vector<float> chosen(const std::vector<float>& given, const std::vector<float>& own,
                          const std::vector<float>& usual, std::size_t channels, const char* option) {
  if (given.empty()) return of_channels(own.empty() ? usual : own, channels);
  ensure(given.size() == channels || given.size() == 1,
         fmt::format("--{}: {} for images of {}", option, count_of(given.size(), "number"),
                     count_of(channels, "channel")));
  return of_channels(given, channels);
}

/// Returns the side of the images if all have the same size, or the shorter side if they are not square; 0 if sizes
/// differ.
std::size_t size_of_data(const data::ImageSet* set) {
  if (set == nullptr || !set->shape()) return 0;
  return std::min(set->shape()->height, set->shape()->width);
}

std::size_t chosen_size(const ImageConfig& config, const std::optional<data::ImageProcessor>& processor,
                        const data::ImageSet* set, PreferredSize preferred) {
  if (config.image_size > 0) return config.image_size;
  const std::size_t of_data = size_of_data(set);
  const std::size_t of_model = processor ? processor->size.value_or(0) : 0;
  const auto [first, second] =
      preferred == PreferredSize::data ? std::pair(of_data, of_model) : std::pair(of_model, of_data);
  return first > 0 ? first : second > 0 ? second : usual_size;
}

}  // namespace

ImageInput resolve_input(const ImageConfig& config, const std::optional<data::ImageProcessor>& processor,
                         const data::ImageSet* set, std::size_t channels, PreferredSize preferred) {
  const Statistics usual = usual_statistics(set);
  const data::ImageProcessor own = processor.value_or(data::ImageProcessor{});
  ImageInput input{.size = chosen_size(config, processor, set, preferred),
                   .channels = channels,
                   .mean = chosen(config.mean, own.mean, usual.mean, channels, "mean"),
                   .deviation = chosen(config.deviation, own.deviation, usual.deviation, channels, "std")};
  // The crop fraction of a directory applies only to its own size.
  if (own.is_bicubic) input.resampling = data::Resampling::bicubic;
  if (own.crop_fraction && own.size == input.size) {
    input.crop_fraction = *own.crop_fraction;
    input.warps = own.warps;
  } else if (set != nullptr) {
    input.crop_fraction = data::default_crop_fraction(*set, input.size);
  }
  return input;
}

data::TransformOptions transform_options(const ImageInput& input) {
  return {
      .size = input.size, .crop_fraction = input.crop_fraction, .warps = input.warps, .resampling = input.resampling};
}

void check_size_for_stem(std::size_t size, families::ImageStem stem) {
  const std::size_t least = stem == families::ImageStem::cifar ? 3 : 7;
  ensure(size >= least, fmt::format("images of {0} x {0} pixels are smaller than the {1} stem's first convolution, "
                                    "{2} x {2}; use a larger --image-size{3}",
                                    size, to_string(stem), least, least > 3 ? ", or --stem cifar" : ""));
}

std::vector<std::uint8_t> convert_channels(std::span<const std::uint8_t> pixels, std::size_t from, std::size_t to) {
  if (from == to) return {pixels.begin(), pixels.end()};
  require((from == 1 && to == 3) || (from == 3 && to == 1),
          fmt::format("images of {} channels for a model of {}", from, to));
  std::vector<std::uint8_t> converted(pixels.size() / from * to);
  for (std::size_t i = 0; i < pixels.size() / from; ++i) {
    if (to == 3) {
      for (std::size_t c = 0; c < 3; ++c) converted[3 * i + c] = pixels[i];
      continue;
    }
    const std::uint32_t red = pixels[3 * i], green = pixels[3 * i + 1], blue = pixels[3 * i + 2];
    converted[i] = static_cast<std::uint8_t>((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16);
  }
  return converted;
}

}  // namespace mylos::tasks
