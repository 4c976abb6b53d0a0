#include "data/images/decode.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "data/images/encode_png.hpp"
#include "tests/data/images/recorded_images.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tests::error_of;
using tests::recorded_image_file;

std::string recorded(const std::string& name) { return recorded_image_file("decoded.jsonl", name); }

TEST(Decode, GivesPillowsBytes) {
  const auto lines = tests::golden_lines("images/decoded.jsonl");
  ASSERT_GE(lines.size(), 25u);
  for (const auto& line : lines) {
    const std::string name = line.at("name"), rgb = tests::from_hexadecimal(line.at("rgb"));
    const Image image = decode_image(tests::from_hexadecimal(line.at("file")));
    const ImageShape shape{line.at("height"), line.at("width"), 3};
    ASSERT_EQ(image.shape, shape) << name;
    // Pillow may contain another version of libjpeg-turbo than ours, so its colours may differ by one level.
    const int allowed = name.starts_with("jpeg") ? 1 : 0;
    EXPECT_LE(tests::largest_difference(image.pixels, {rgb.begin(), rgb.end()}), allowed) << name;
  }
}

TEST(Decode, ReadsWhatIsEncoded) {
  for (const std::size_t channels : {1, 3}) {
    Image image{{5, 7, channels}, {}};
    for (std::size_t i = 0; i < image.shape.size(); ++i) image.pixels.push_back(static_cast<std::uint8_t>(11 * i));
    const Image read = decode_image(encode_png(image));
    ASSERT_EQ(read.shape, (ImageShape{5, 7, 3}));
    for (std::size_t i = 0; i < read.shape.size(); ++i) {
      ASSERT_EQ(read.pixels[i], image.pixels[channels == 1 ? i / 3 : i]) << channels << " " << i;
    }
  }
}

TEST(Decode, APartHasTheBytesOfTheWhole) {
  const Region regions[] = {{0, 0, 21, 30}, {3, 5, 9, 11}, {20, 29, 1, 1},
                            {17, 0, 4, 30}, {8, 16, 8, 8}, {1, 1, 19, 3}};
  for (const auto& line : tests::golden_lines("images/decoded.jsonl")) {
    if (line.at("height") != 21) continue;
    const std::string file = tests::from_hexadecimal(line.at("file"));
    const Image whole = decode_image(file);
    for (const Region& region : regions) {
      const Image part = decode_image(file, [&](std::size_t height, std::size_t width) {
        EXPECT_EQ(height, 21u);
        EXPECT_EQ(width, 30u);
        return region;
      });
      EXPECT_EQ(part.pixels, crop(whole, region).pixels) << line.at("name") << " from row " << region.top;
    }
  }
}

TEST(Decode, FilesThatAreNoImagesAreNamedForWhatTheyAre) {
  EXPECT_EQ(error_of([] { decode_image(""); }), "is empty");
  EXPECT_EQ(error_of([] { decode_image("GIF89a and so on"); }), "is neither JPEG nor PNG");
  EXPECT_EQ(error_of([] { decode_image("\xFF\xD8\xFFhello"); }), "is damaged (libjpeg: Unsupported marker type 0x68)");
  EXPECT_EQ(error_of([] { decode_image("\xFF\xD8\xFF\xE0"); }), "ends early");
  EXPECT_EQ(error_of([] { decode_image("\x89PNG\r\n\x1A\n"); }), "ends early");
  EXPECT_EQ(error_of([] { decode_image("\x89PNG\r\n\x1A\n\x00\x00\x00\x0dIHDR more than nothing"); }), "ends early");
}

TEST(Decode, AFileCutShortIsRefused) {
  for (const char* name : {"jpeg baseline 4:2:0", "jpeg progressive", "jpeg CMYK", "png RGB", "png interlaced"}) {
    const std::string file = recorded(name);
    for (std::size_t size = 8; size + 2 < file.size(); size += 13) {
      EXPECT_THAT(error_of([&] { decode_image(file.substr(0, size)); }),
                  AnyOf("ends early", StartsWith("is damaged (")))
          << name << " after " << size;
    }
  }
}

TEST(Decode, DamageEndsInOneLineOrAPicture) {
  std::mt19937 random(9);
  std::size_t refused = 0;
  for (const auto& line : tests::golden_lines("images/decoded.jsonl")) {
    const std::string file = tests::from_hexadecimal(line.at("file"));
    for (int round = 0; round < 60; ++round) {
      std::string damaged = file;
      for (int flips = 0; flips < 3; ++flips) damaged[random() % file.size()] = static_cast<char>(random());
      try {
        decode_image(damaged);
      } catch (const std::runtime_error& error) {
        ++refused;
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      }
    }
  }
  EXPECT_GT(refused, 100u);
}

TEST(Decode, SizesThatLieAreRefusedBeforeMemoryIsTaken) {
  std::string png = recorded("png RGB");
  png.replace(16, 8, std::string("\x00\x00\x40\x00\x00\x00\x20\x00", 8));  // with the wrong checksum
  EXPECT_THAT(error_of([&] { decode_image(png); }), StartsWith("is damaged (libpng: IHDR: CRC error"));
  std::string jpeg = recorded("jpeg baseline 4:2:0");
  const auto frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xFF\xDC\xFF\xDC");
  EXPECT_EQ(error_of([&] { decode_image(jpeg); }),
            "says that it has 65500 x 65500 pixels; 178956970 are the most that are read");
}

TEST(Decode, APngOfMorePixelsThanItsBytesCanHoldIsRefused) {
  // 8,000 x 8,000 pixels in 57 bytes, with a correct header checksum.
  const std::string header("\x00\x00\x00\x0dIHDR\x00\x00\x1f\x40\x00\x00\x1f\x40\x08\x02\x00\x00\x00", 21);
  std::uint32_t sum = 0xffffffff;
  for (std::size_t i = 4; i < header.size(); ++i) {
    sum ^= static_cast<unsigned char>(header[i]);
    for (int bit = 0; bit < 8; ++bit) sum = sum & 1 ? sum >> 1 ^ 0xedb88320 : sum >> 1;
  }
  sum = ~sum;
  std::string file = "\x89PNG\r\n\x1A\n" + header;
  for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(sum >> shift);
  file += std::string("\x00\x00\x00\x08IDAT", 8);  // where libpng stops reading the header
  EXPECT_EQ(error_of([&] { decode_image(file); }), "says that it has 8000 x 8000 pixels, too many for 41 bytes");
}

TEST(Decode, ARegionOutsideIsTheCallersFault) {
  const std::string file = recorded("png RGB");
  for (const Region region : {Region{0, 0, 22, 30}, Region{0, 1, 21, 30}, Region{0, 0, 0, 1}}) {
    EXPECT_THAT(error_of([&] { decode_image(file, [&](auto, auto) { return region; }); }),
                HasSubstr("is not inside an image of 21 x 30"));
  }
}

}  // namespace
}  // namespace mylos::data
