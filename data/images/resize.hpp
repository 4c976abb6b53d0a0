#pragma once

#include <string_view>

#include "data/images/image.hpp"

namespace mylos::data {

/// Resampling filters of Pillow.
enum class Resampling {
  bilinear,  ///< triangle filter
  bicubic,   ///< Keys' cubic filter with a = -0.5
};

/// Returns "bilinear" or "bicubic".
std::string_view to_string(Resampling filter);

/// Resizes to height x width with antialiasing, as Pillow's `Image.resize((width, height), filter)` does: horizontally,
/// then vertically, in Pillow's fixed-point arithmetic. The bytes equal those of Pillow before 13; they differ by at
/// most one level from those of Pillow 13, which may start vertically. An axis that keeps its size is not filtered.
/// `window` selects the region of the resized image to compute, which must lie inside it.
Image resize(const Image& image, std::size_t height, std::size_t width, const Region& window,
             Resampling filter = Resampling::bilinear);

/// Computes the whole resized image.
Image resize(const Image& image, std::size_t height, std::size_t width, Resampling filter = Resampling::bilinear);

}  // namespace mylos::data
