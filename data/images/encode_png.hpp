#pragma once

#include <string>

#include "data/images/image.hpp"

namespace mylos::data {

/// Encodes a grey or RGB image as a PNG file. Throws std::runtime_error on failure.
std::string encode_png(const Image& image);

}  // namespace mylos::data
