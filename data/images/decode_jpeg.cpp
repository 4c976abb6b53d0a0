// libjpeg requires an error handler that does not return; ours uses longjmp. Therefore its calls are in separate
// functions (`JpegStep`) without objects that need destruction.
#include <fmt/format.h>

#include <csetjmp>
#include <cstdio>  // jpeglib.h uses FILE
#include <string>

#include <jerror.h>
#include <jpeglib.h>

#include "core/base/error.hpp"
#include "data/images/decode.hpp"

#ifndef LIBJPEG_TURBO_VERSION
#error \
    "jpeglib.h is not libjpeg-turbo's, which alone can pass over rows: put libjpeg-turbo's prefix first in CMAKE_PREFIX_PATH"
#endif

namespace mylos::data {
namespace {

constexpr int most_scans = 500;  // of a progressive file; each costs a pass over the whole image

struct JpegReader {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump{};
  std::string_view bytes;
  char message[JMSG_LENGTH_MAX] = {};
  bool ends_early = false;
  Region region;
  std::uint8_t* target = nullptr;  ///< next row of `region`, at the full width of the image

  JpegReader() = default;
  ~JpegReader() { jpeg_destroy_decompress(&info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
};

using JpegStep = void (*)(JpegReader&);

JpegReader& reader_of(j_common_ptr info) { return *static_cast<JpegReader*>(info->client_data); }

[[noreturn]] void leave_jpeg(j_common_ptr info) {
  info->err->format_message(info, reader_of(info).message);
  std::longjmp(reader_of(info).jump, 1);
}

/// At a premature end, libjpeg would continue with an inserted end marker and leave the rest of the image grey.
void take_jpeg_message(j_common_ptr info, int level) {
  if (level >= 0 || info->err->msg_code != JWRN_JPEG_EOF) return;
  reader_of(info).ends_early = true;
  leave_jpeg(info);
}

void write_no_jpeg_message(j_common_ptr) {}

void limit_scans(j_common_ptr info) {
  auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number > most_scans) ERREXIT(info, JERR_BAD_PROGRESSION);
}

void read_jpeg_header(JpegReader& reader) {
  jpeg_create_decompress(&reader.info);
  reader.info.client_data = &reader;
  reader.progress.progress_monitor = limit_scans;
  reader.info.progress = &reader.progress;
  jpeg_mem_src(&reader.info, reinterpret_cast<const unsigned char*>(reader.bytes.data()), reader.bytes.size());
  jpeg_read_header(&reader.info, TRUE);
  reader.info.out_color_space = reader.info.num_components == 4 ? JCS_CMYK : JCS_RGB;
}

void start_jpeg(JpegReader& reader) { jpeg_start_decompress(&reader.info); }

/// Reads the rows of the region. Skips earlier rows and does not read later ones.
void read_jpeg_rows(JpegReader& reader) {
  const Region& region = reader.region;
  if (region.top > 0) jpeg_skip_scanlines(&reader.info, static_cast<JDIMENSION>(region.top));
  const std::size_t row_bytes = std::size_t{reader.info.output_width} * reader.info.output_components;
  for (std::size_t y = 0; y < region.height; ++y) {
    JSAMPROW row = reader.target + y * row_bytes;
    jpeg_read_scanlines(&reader.info, &row, 1);
  }
  // Only a region with the last row needs the end of the file: finish, to detect that it is missing.
  if (region.top + region.height == reader.info.output_height) jpeg_finish_decompress(&reader.info);
}

void run_jpeg(JpegReader& reader, JpegStep step) {
  if (setjmp(reader.jump) == 0) {
    step(reader);
    return;
  }
  fail(reader.ends_early ? "ends early" : fmt::format("is damaged (libjpeg: {})", reader.message));
}

/// Converts Adobe's inverted CMYK to RGB, in Pillow's integer arithmetic.
Image from_inverted_cmyk(const Image& image) {
  Image rgb{{image.shape.height, image.shape.width, 3}, {}};
  rgb.pixels.resize(rgb.shape.size());
  for (std::size_t i = 0; i < rgb.shape.height * rgb.shape.width; ++i) {
    const unsigned light = image.pixels[4 * i + 3];  // 255 - black
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned product = (255u - image.pixels[4 * i + c]) * light + 128u;
      const int value = static_cast<int>(light) - static_cast<int>(((product >> 8) + product) >> 8);
      rgb.pixels[3 * i + c] = static_cast<std::uint8_t>(value < 0 ? 0 : value);
    }
  }
  return rgb;
}

}  // namespace

Image decode_jpeg(std::string_view bytes, const ChooseRegion& choose) {
  JpegReader reader;
  reader.bytes = bytes;
  reader.info.client_data = &reader;
  reader.info.err = jpeg_std_error(&reader.errors);
  reader.errors.error_exit = leave_jpeg;
  reader.errors.emit_message = take_jpeg_message;
  reader.errors.output_message = write_no_jpeg_message;
  run_jpeg(reader, read_jpeg_header);
  const std::size_t height = reader.info.image_height, width = reader.info.image_width;
  check_image_size(height, width);
  reader.region = chosen_region(choose, height, width);
  run_jpeg(reader, start_jpeg);
  const auto channels = static_cast<std::size_t>(reader.info.output_components);
  ensure(channels == 3 || channels == 4, fmt::format("has {} channels", channels));
  const Region rows{0, reader.region.left, reader.region.height, reader.region.width};
  Image image{{rows.height, width, channels}, std::vector<std::uint8_t>(rows.height * width * channels)};
  reader.target = image.pixels.data();
  run_jpeg(reader, read_jpeg_rows);
  if (rows.width != width) image = crop(image, rows);
  return channels == 4 ? from_inverted_cmyk(image) : std::move(image);
}

}  // namespace mylos::data
