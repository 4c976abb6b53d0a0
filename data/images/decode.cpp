#include "data/images/decode.hpp"

#include "core/base/error.hpp"

namespace mylos::data {
namespace {

constexpr std::string_view jpeg_mark = "\xFF\xD8\xFF";
constexpr std::string_view png_mark = "\x89PNG\r\n\x1A\n";

}  // namespace

Image decode_image(std::string_view bytes, const ChooseRegion& choose) {
  ensure(!bytes.empty(), "is empty");
  if (bytes.starts_with(jpeg_mark)) return decode_jpeg(bytes, choose);
  if (bytes.starts_with(png_mark)) return decode_png(bytes, choose);
  fail("is neither JPEG nor PNG");
}

}  // namespace mylos::data
