// libpng leaves by longjmp on an error. Therefore its calls are in separate functions (`PngStep`) without objects that
// need destruction.
#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>

#include "core/base/error.hpp"
#include "data/images/decode.hpp"

namespace mylos::data {
namespace {

/// Upper bound on the output bytes of deflate per input byte: 1032 (zlib's technical notes).
constexpr std::size_t most_inflation = 1032;
constexpr std::size_t most_bytes_of_chunk = 8 << 20;  // for colour profiles and texts, which are not used

struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view bytes;
  std::size_t position = 0;
  char message[160] = {};
  bool is_grey_16 = false;
  unsigned char** rows = nullptr;

  PngReader() = default;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
};

using PngStep = void (*)(PngReader&);

void copy_message(char (&message)[160], const char* text) {
  std::strncpy(message, text, sizeof message - 1);
  message[sizeof message - 1] = '\0';
}

[[noreturn]] void leave_png(png_structp png, png_const_charp text) {
  copy_message(static_cast<PngReader*>(png_get_error_ptr(png))->message, text);
  png_longjmp(png, 1);
}

void ignore_png_warning(png_structp, png_const_charp) {}

void give_png_bytes(png_structp png, png_bytep target, std::size_t count) {
  auto& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader.bytes.size() - reader.position) png_error(png, "ends early");
  std::memcpy(target, reader.bytes.data() + reader.position, count);
  reader.position += count;
}

void read_png_header(PngReader& reader) {
  png_set_read_fn(reader.png, &reader, give_png_bytes);
  png_set_user_limits(reader.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_image_size applies our limit
  png_set_chunk_malloc_max(reader.png, most_bytes_of_chunk);
  png_read_info(reader.png, reader.info);
}

/// Selects three channels of 8 bits, except that 16-bit grey is kept.
void choose_png_output(PngReader& reader) {
  const int color = png_get_color_type(reader.png, reader.info);
  const int depth = png_get_bit_depth(reader.png, reader.info);
  reader.is_grey_16 = color == PNG_COLOR_TYPE_GRAY && depth == 16;
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(reader.png);
  if (color == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(reader.png);
  if (depth == 16 && !reader.is_grey_16) png_set_strip_16(reader.png);
  png_set_strip_alpha(reader.png);
  const bool is_grey = color == PNG_COLOR_TYPE_GRAY || color == PNG_COLOR_TYPE_GRAY_ALPHA;
  if (is_grey && !reader.is_grey_16) png_set_gray_to_rgb(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
}

void read_png_rows(PngReader& reader) {
  png_read_image(reader.png, reader.rows);
  png_read_end(reader.png, nullptr);
}

void run_png(PngReader& reader, PngStep step) {
  if (setjmp(png_jmpbuf(reader.png)) == 0) {
    step(reader);
    return;
  }
  const std::string_view message = reader.message;
  fail(message == "ends early" ? std::string(message) : fmt::format("is damaged (libpng: {})", message));
}

/// Converts 16-bit grey as Pillow converts I;16 to L.
Image cut_to_bytes(const std::vector<std::uint8_t>& samples, std::size_t height, std::size_t width) {
  Image image{{height, width, 3}, std::vector<std::uint8_t>(height * width * 3)};
  for (std::size_t i = 0; i < height * width; ++i) {
    const std::uint8_t value = samples[2 * i] != 0 ? 255 : samples[2 * i + 1];
    for (std::size_t c = 0; c < 3; ++c) image.pixels[3 * i + c] = value;
  }
  return image;
}

}  // namespace

Image decode_png(std::string_view bytes, const ChooseRegion& choose) {
  PngReader reader;
  reader.bytes = bytes;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, leave_png, ignore_png_warning);
  ensure(reader.png != nullptr, "cannot be read: libpng does not start");
  reader.info = png_create_info_struct(reader.png);
  ensure(reader.info != nullptr, "cannot be read: libpng has no memory");
  run_png(reader, read_png_header);
  const std::size_t height = png_get_image_height(reader.png, reader.info);
  const std::size_t width = png_get_image_width(reader.png, reader.info);
  check_image_size(height, width);
  ensure(height * png_get_rowbytes(reader.png, reader.info) / most_inflation <= bytes.size(),
         fmt::format("says that it has {} x {} pixels, too many for {} bytes", height, width, bytes.size()));
  const Region region = chosen_region(choose, height, width);
  run_png(reader, choose_png_output);
  const std::size_t row_bytes = width * (reader.is_grey_16 ? 2 : 3);
  ensure(png_get_rowbytes(reader.png, reader.info) == row_bytes, "has pixels of an unknown kind");
  Image image{{height, width, 3}, std::vector<std::uint8_t>(height * row_bytes)};
  std::vector<unsigned char*> rows(height);
  for (std::size_t y = 0; y < height; ++y) rows[y] = image.pixels.data() + y * row_bytes;
  reader.rows = rows.data();
  run_png(reader, read_png_rows);
  if (reader.is_grey_16) image = cut_to_bytes(image.pixels, height, width);
  return region == Region{0, 0, height, width} ? std::move(image) : crop(image, region);
}

}  // namespace mylos::data
