#pragma once

#include <string_view>

#include "data/images/image.hpp"

/// Decodes JPEG and PNG files to RGB as Pillow's `Image.open(file).convert("RGB")` does. Errors are std::runtime_error
/// with the reason only, such as "ends early" or "is neither JPEG nor PNG"; the caller prepends the file name.
namespace mylos::data {

/// Decodes the region of an image that `choose` selects. The first bytes determine the format.
Image decode_image(std::string_view bytes, const ChooseRegion& choose = {});

/// Decodes JPEG with libjpeg-turbo and its exact integer transform: baseline, progressive and arithmetic coding. CMYK
/// is assumed to be inverted, as Adobe writes it. EXIF orientation is ignored. Rows outside the region are not
/// transformed. A truncated file is an error; other damage, for which libjpeg only warns, is accepted.
Image decode_jpeg(std::string_view bytes, const ChooseRegion& choose = {});

/// Decodes PNG with libpng. As in Pillow, alpha and transparent colours are dropped, 16-bit colours lose their low
/// byte, and 16-bit grey values are clamped to 255. Gamma and colour profiles are ignored.
Image decode_png(std::string_view bytes, const ChooseRegion& choose = {});

}  // namespace mylos::data
