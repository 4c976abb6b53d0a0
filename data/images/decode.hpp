#pragma once

#include <string_view>

#include "data/images/image.hpp"

/// Decodes JPEG and PNG files to RGB as Pillow's `Image.open(file).convert("RGB")` does. Errors are std::runtime_error
/// with the reason, for the caller to put the file's name before: "ends early", "is neither JPEG nor PNG".
namespace mylos::data {

/// Decodes the part of a picture that `choose` asks for, by the format that its first bytes say.
Image decode_image(std::string_view bytes, const ChooseRegion& choose = {});

/// JPEG, by libjpeg-turbo with its exact integer transform: baseline, progressive and arithmetic. CMYK is taken to be
/// inverted, as Adobe writes it. EXIF's orientation is ignored. Rows outside the region are not transformed. A file
/// that ends early is refused, other damage that libjpeg only warns of is not.
Image decode_jpeg(std::string_view bytes, const ChooseRegion& choose = {});

/// PNG, by libpng. Alpha and transparent colours are dropped, colours of 16 bits lose their low byte, and grey of 16
/// bits is cut to 255, which is what Pillow does. Gamma and colour profiles are ignored.
Image decode_png(std::string_view bytes, const ChooseRegion& choose = {});

}  // namespace mylos::data
