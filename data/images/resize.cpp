#include "data/images/resize.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace mylos::data {
namespace {

constexpr int fraction_bits = 32 - 8 - 2;  // of a weight; leaves room for the sign and for sums of up to twice 255

/// The inputs of one output along an axis, and their weights.
struct Taps {
  std::size_t begin = 0;
  std::size_t count = 0;
  std::size_t weights = 0;  ///< index of the first weight in AxisFilter::weights
};

struct AxisFilter {
  std::vector<Taps> taps;  ///< one per output
  std::vector<std::int32_t> weights;
};

constexpr double reach_of(Resampling filter) { return filter == Resampling::bicubic ? 2.0 : 1.0; }

/// Returns the weight of an input at distance `x` from the centre of the output.
double weight_at(Resampling filter, double x) {
  x = std::fabs(x);
  if (filter == Resampling::bilinear) return std::max(1.0 - x, 0.0);
  constexpr double a = -0.5;
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

/// Returns the filter of outputs [first, first + outputs) of `resized`, from `size` inputs. Arithmetic and rounding are
/// Pillow's, in double precision.
AxisFilter filter_of_axis(Resampling kind, std::size_t size, std::size_t resized, std::size_t first,
                          std::size_t outputs) {
  const double scale = static_cast<double>(size) / static_cast<double>(resized);
  const double stretch = std::max(scale, 1.0), support = reach_of(kind) * stretch;
  const double inverse = 1.0 / stretch;
  AxisFilter filter;
  std::vector<double> weights;
  for (std::size_t output = first; output < first + outputs; ++output) {
    const double center = (static_cast<double>(output) + 0.5) * scale;
    const auto begin = static_cast<std::size_t>(std::max(center - support + 0.5, 0.0));
    const auto end = std::min(static_cast<std::size_t>(center + support + 0.5), size);
    double sum = 0.0;
    weights.clear();
    for (std::size_t x = begin; x < end; ++x) {
      const double distance = (static_cast<double>(x) - center + 0.5) * inverse;
      weights.push_back(weight_at(kind, distance));
      sum += weights.back();
    }
    filter.taps.push_back({begin, end - begin, filter.weights.size()});
    for (const double weight : weights) {
      const double share = sum != 0.0 ? weight / sum : weight;
      filter.weights.push_back(static_cast<std::int32_t>((share < 0.0 ? -0.5 : 0.5) + share * (1 << fraction_bits)));
    }
  }
  return filter;
}

std::uint8_t to_byte(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> fraction_bits, 0, 255)); }

constexpr std::int32_t half_a_byte = 1 << (fraction_bits - 1);

template <std::size_t channels>
void resize_row(const std::uint8_t* source, const AxisFilter& filter, std::uint8_t* target) {
  for (const Taps& taps : filter.taps) {
    std::int32_t sums[channels];
    std::fill_n(sums, channels, half_a_byte);
    const std::uint8_t* pixel = source + taps.begin * channels;
    const std::int32_t* weights = filter.weights.data() + taps.weights;
    for (std::size_t k = 0; k < taps.count; ++k, pixel += channels) {
      for (std::size_t c = 0; c < channels; ++c) sums[c] += pixel[c] * weights[k];
    }
    for (std::size_t c = 0; c < channels; ++c) *target++ = to_byte(sums[c]);
  }
}

/// Resizes rows [first, first + rows) of the image horizontally.
Image resize_rows(const Image& image, const AxisFilter& filter, std::size_t first, std::size_t rows) {
  const std::size_t channels = image.shape.channels;
  Image resized{{rows, filter.taps.size(), channels}, {}};
  resized.pixels.resize(resized.shape.size());
  for (std::size_t y = 0; y < rows; ++y) {
    const std::uint8_t* source = image.row(first + y);
    channels == 1 ? resize_row<1>(source, filter, resized.row(y)) : resize_row<3>(source, filter, resized.row(y));
  }
  return resized;
}

/// Resizes an image vertically. Its first row is row `first` of the filter's inputs.
Image resize_columns(const Image& image, const AxisFilter& filter, std::size_t first) {
  Image resized{{filter.taps.size(), image.shape.width, image.shape.channels}, {}};
  resized.pixels.resize(resized.shape.size());
  const std::size_t row = image.shape.width * image.shape.channels;
  std::vector<std::int32_t> sums(row);
  for (std::size_t y = 0; y < filter.taps.size(); ++y) {
    const Taps& taps = filter.taps[y];
    std::ranges::fill(sums, half_a_byte);
    for (std::size_t k = 0; k < taps.count; ++k) {
      const std::uint8_t* source = image.row(taps.begin + k - first);
      const std::int32_t weight = filter.weights[taps.weights + k];
      for (std::size_t x = 0; x < row; ++x) sums[x] += source[x] * weight;
    }
    std::uint8_t* target = resized.row(y);
    for (std::size_t x = 0; x < row; ++x) target[x] = to_byte(sums[x]);
  }
  return resized;
}

}  // namespace

std::string_view to_string(Resampling filter) { return filter == Resampling::bicubic ? "bicubic" : "bilinear"; }

Image resize(const Image& image, std::size_t height, std::size_t width, const Region& window, Resampling filter) {
  const ImageShape& shape = image.shape;
  require(shape.channels == 1 || shape.channels == 3, "an image of 1 or 3 channels");
  chosen_region([&](std::size_t, std::size_t) { return window; }, height, width);
  const bool same_height = height == shape.height, same_width = width == shape.width;
  if (same_height && same_width) return crop(image, window);
  const AxisFilter vertical = filter_of_axis(filter, shape.height, height, window.top, window.height);
  const std::size_t top = same_height ? window.top : vertical.taps.front().begin;
  const std::size_t bottom =
      same_height ? window.top + window.height : vertical.taps.back().begin + vertical.taps.back().count;
  const Image rows = same_width
                         ? crop(image, {top, window.left, bottom - top, window.width})
                         : resize_rows(image, filter_of_axis(filter, shape.width, width, window.left, window.width),
                                       top, bottom - top);
  return same_height ? rows : resize_columns(rows, vertical, top);
}

Image resize(const Image& image, std::size_t height, std::size_t width, Resampling filter) {
  return resize(image, height, width, {0, 0, height, width}, filter);
}

}  // namespace mylos::data
