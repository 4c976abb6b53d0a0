#include "data/images/image_transform.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "data/images/memory_images.hpp"
#include "data/images/resize.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

/// Returns one image of this size with the pixels 1, 2, 3, ... 251, 1, ...
MemoryImages one_image(std::size_t height, std::size_t width, std::size_t channels = 3) {
  MemoryImages::Content content{.shape = {height, width, channels}, .labels = {0}, .label_names = {"a"}};
  for (std::size_t i = 0; i < content.shape.size(); ++i) content.pixels.push_back(static_cast<char>(i % 251 + 1));
  return MemoryImages(std::move(content));
}

std::vector<std::uint8_t> transformed(const ImageSet& set, const TransformOptions& options, std::uint64_t step = 0,
                                      std::uint64_t seed = 0) {
  std::vector<std::uint8_t> pixels(options.size * options.size * channels_of(set));
  transform_image(set, options, {.seed = seed, .step = step, .image = 0}, pixels);
  return pixels;
}

TEST(ImageTransform, ImagesOfTheSizeStayAsTheyAre) {
  const auto set = one_image(28, 28, 1);
  EXPECT_EQ(default_crop_fraction(set, 28), 1.0);
  EXPECT_EQ(default_crop_fraction(set, 32), 0.875);
  EXPECT_EQ(transformed(set, {.size = 28, .crop_fraction = 1.0}), set.decode(0).pixels);
}

TEST(ImageTransform, WarpedImagesBecomeSquaresFirst) {
  const auto set = one_image(40, 61);
  const TransformOptions whole{.size = 24, .crop_fraction = 1.0, .warps = true, .resampling = Resampling::bicubic};
  EXPECT_EQ(transformed(set, whole), resize(set.decode(0), 24, 24, Resampling::bicubic).pixels);
  const TransformOptions cut{.size = 24, .crop_fraction = 0.75, .warps = true};
  EXPECT_EQ(transformed(set, cut), crop(resize(set.decode(0), 32, 32), {4, 4, 24, 24}).pixels);
}

TEST(ImageTransform, EvaluationResizesTheShorterSideAndCropsTheCentre) {
  for (const auto& [height, width] : {std::pair{40, 61}, {61, 40}, {40, 40}, {9, 30}}) {
    const auto set = one_image(static_cast<std::size_t>(height), static_cast<std::size_t>(width));
    const std::size_t shorter = 24 / 0.75,
                      longer = static_cast<std::size_t>(32.0 * std::max(height, width) / std::min(height, width));
    const bool is_tall = height > width;
    const Image resized = resize(set.decode(0), is_tall ? longer : shorter, is_tall ? shorter : longer);
    const auto begin = [](std::size_t side) { return static_cast<std::size_t>(std::nearbyint((side - 24.0) / 2)); };
    const Region centre{begin(resized.shape.height), begin(resized.shape.width), 24, 24};
    EXPECT_EQ(transformed(set, {.size = 24, .crop_fraction = 0.75}), crop(resized, centre).pixels) << height;
  }
}

TEST(ImageTransform, CropFlipTakesEveryPlaceOfThePaddedImage) {
  const std::size_t size = 6, side = size + 8;
  const auto set = one_image(size, size, 1);
  const TransformOptions options{.size = size, .crop_fraction = 1.0, .augmentation = Augmentation::crop_flip};
  std::vector<int> padded(side * side);
  for (std::size_t i = 0; i < size * size; ++i) padded[(i / size + 4) * side + i % size + 4] = static_cast<int>(i + 1);
  std::set<std::vector<std::uint8_t>> expected;
  for (std::size_t top = 0; top <= 8; ++top) {
    for (std::size_t left = 0; left <= 8; ++left) {
      std::vector<std::uint8_t> plain, flipped;
      for (std::size_t y = 0; y < size; ++y) {
        for (std::size_t x = 0; x < size; ++x) {
          plain.push_back(static_cast<std::uint8_t>(padded[(top + y) * side + left + x]));
          flipped.push_back(static_cast<std::uint8_t>(padded[(top + y) * side + left + size - 1 - x]));
        }
      }
      expected.insert(plain);
      expected.insert(flipped);
    }
  }
  std::set<std::vector<std::uint8_t>> found;
  for (std::uint64_t step = 0; step < 3000; ++step) found.insert(transformed(set, options, step));
  EXPECT_EQ(found, expected);
}

TEST(ImageTransform, RandomPartsHaveTheAreaAndRatioOfTheirBounds) {
  const double height = 300, width = 400;
  double areas = 0, logarithms = 0;
  std::set<std::size_t> tops;
  const int draws = 4000;
  for (std::uint64_t image = 0; image < draws; ++image) {
    const Region part = random_part({.seed = 1, .step = 2, .image = image}, 300, 400);
    const double area = static_cast<double>(part.height * part.width) / (height * width);
    const double ratio = static_cast<double>(part.width) / static_cast<double>(part.height);
    ASSERT_LE(part.top + part.height, 300u);
    ASSERT_LE(part.left + part.width, 400u);
    ASSERT_GT(area, 0.078);
    ASSERT_GT(ratio, 0.74);
    ASSERT_LT(ratio, 1.35);
    areas += area / draws;
    logarithms += std::log(ratio) / draws;
    tops.insert(part.top);
  }
  // From 20,000 draws by torchvision's rules in Python. Below (1 + 0.08) / 2, as large crops do not fit every aspect
  // ratio.
  EXPECT_NEAR(areas, 0.4348, 0.015);
  EXPECT_NEAR(logarithms, 0.031, 0.015);
  EXPECT_GT(tops.size(), 150u);
}

TEST(ImageTransform, WhereNoPartFitsTheCentreIsTaken) {
  EXPECT_EQ(random_part({}, 100, 3), (Region{48, 0, 4, 3}));
  EXPECT_EQ(random_part({}, 3, 100), (Region{0, 48, 3, 4}));
  EXPECT_EQ(random_part({}, 1, 1), (Region{0, 0, 1, 1}));
}

TEST(ImageTransform, ImagenetResizesThePartThatWasDrawn) {
  const auto set = one_image(50, 60);
  const TransformOptions options{.size = 16, .augmentation = Augmentation::imagenet};
  int flipped = 0;
  for (std::uint64_t step = 0; step < 40; ++step) {
    const AugmentationKey key{.seed = 5, .step = step, .image = 0};
    Image expected = resize(crop(set.decode(0), random_part(key, 50, 60)), 16, 16);
    if (is_flipped(key)) {
      ++flipped;
      Image mirrored = expected;
      for (std::size_t y = 0; y < 16; ++y) {
        for (std::size_t x = 0; x < 16; ++x) std::copy_n(expected.row(y) + 3 * x, 3, mirrored.row(y) + 3 * (15 - x));
      }
      expected = mirrored;
    }
    EXPECT_EQ(transformed(set, options, step, 5), expected.pixels) << step;
  }
  EXPECT_GT(flipped, 8);
  EXPECT_LT(flipped, 32);
}

TEST(ImageTransform, SeedStepAndImageAllChangeTheDraws) {
  const AugmentationKey key{.seed = 5, .step = 6, .image = 7};
  EXPECT_EQ(random_part(key, 300, 400), random_part(key, 300, 400));
  for (const AugmentationKey other : {AugmentationKey{4, 6, 7}, AugmentationKey{5, 7, 7}, AugmentationKey{5, 6, 8}}) {
    EXPECT_NE(random_part(key, 300, 400), random_part(other, 300, 400));
  }
  // Recorded: a later version must draw the same values, or resumed runs would see other images.
  EXPECT_EQ(random_part(key, 300, 400), (Region{22, 132, 214, 254}));
}

TEST(ImageTransform, WrongOptionsAreTheCallersFault) {
  const auto set = one_image(8, 8);
  std::vector<std::uint8_t> pixels(10);
  EXPECT_THAT(tests::error_of([&] { transform_image(set, {.size = 8}, {}, pixels); }),
              ::testing::HasSubstr("an array of size x size x channels bytes"));
  EXPECT_THAT(tests::error_of([&] { transform_image(set, {.size = 8, .crop_fraction = 0.0}, {}, pixels); }),
              ::testing::HasSubstr("a crop fraction in (0, 1]"));
}

}  // namespace
}  // namespace mylos::data
