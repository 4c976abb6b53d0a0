#pragma once

#include <string>

#include "data/images/image.hpp"

namespace mylos::data {

/// The image as a PNG file, grey or RGB. Errors: std::runtime_error.
std::string encode_png(const Image& image);

}  // namespace mylos::data
