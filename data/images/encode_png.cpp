#include "data/images/encode_png.hpp"

#include <png.h>

#include "core/base/error.hpp"

namespace mylos::data {

std::string encode_png(const Image& image) {
  require(image.shape.channels == 1 || image.shape.channels == 3, "an image of 1 or 3 channels");
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.shape.width);
  png.height = static_cast<png_uint_32>(image.shape.height);
  png.format = image.shape.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string bytes;
  png_alloc_size_t size = 0;
  if (png_image_write_to_memory(&png, nullptr, &size, 0, image.pixels.data(), 0, nullptr) != 0) {
    bytes.resize(size);
    if (png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr) != 0) return bytes;
  }
  fail(std::string("cannot be written as PNG (libpng: ") + png.message + ")");
}

}  // namespace mylos::data
