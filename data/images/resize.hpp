#pragma once

#include <string_view>

#include "data/images/image.hpp"

namespace mylos::data {

/// Filters of Pillow.
enum class Resampling {
  bilinear,  ///< a triangle
  bicubic,   ///< Keys' cubic with a = -0.5
};

/// "bilinear" or "bicubic".
std::string_view to_string(Resampling filter);

/// Resizes to height x width as Pillow's `Image.resize((width, height), filter)` does, antialiased: horizontally and
/// then vertically, in Pillow's fixed-point numbers, so that the bytes are equal: to those of Pillow before 13 always,
/// of 13, which may begin vertically, to one level. An axis that keeps its size is left alone. `window` chooses the
/// part of the resized image that is computed; it must lie inside.
Image resize(const Image& image, std::size_t height, std::size_t width, const Region& window,
             Resampling filter = Resampling::bilinear);

/// All of the resized image.
Image resize(const Image& image, std::size_t height, std::size_t width, Resampling filter = Resampling::bilinear);

}  // namespace mylos::data
