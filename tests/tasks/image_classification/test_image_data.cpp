#include "tasks/image_classification/image_data.hpp"

#include "tests/data/images/small_images.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>

namespace mylos::tasks {
namespace {

class ImageReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    tests::write_small_digits(directory_.path(), 20, 0);
    set_ = data::open_images(FileReader(), directory_.path().string(), data::ImagePart::training);
  }
  ImageReader reader(std::size_t threads = 2) const {
    return {*set_,
            {.transform = {.size = 12, .augmentation = data::Augmentation::crop_flip}, .seed = 5, .threads = threads}};
  }

  tests::TemporaryDirectory directory_;
  std::unique_ptr<data::ImageSet> set_;
};

const std::vector<std::uint64_t> three{4, 17, 9}, two{1, 0};

TEST_F(ImageReaderTest, ImagesReadAheadAreThoseReadWhenTheyAreAskedFor) {
  ImageReader ahead = reader(), later = reader(1);
  std::atomic<int> requests = 0;
  ahead.read_ahead([&](std::uint64_t number) -> std::optional<data::ImageRequest> {
    ++requests;
    if (number > 1) return std::nullopt;
    return data::ImageRequest{number, number == 0 ? three : two};
  });
  for (const auto& [step, images] : {std::pair(0, three), std::pair(1, two)}) {
    const data::ImageBatch batch = ahead.read(step, images);
    EXPECT_EQ(batch.pixels, later.read(step, images).pixels);
    EXPECT_EQ(batch.images, images);
    EXPECT_EQ(batch.labels.size(), images.size());
  }
  EXPECT_GE(requests, 2) << "the second was asked for before it was needed";
}

TEST_F(ImageReaderTest, WhatWasNotExpectedIsReadAllTheSame) {
  ImageReader other = reader(), plain = reader();
  other.read_ahead([](std::uint64_t number) { return std::optional(data::ImageRequest{number, three}); });
  EXPECT_EQ(other.read(0, two).pixels, plain.read(0, two).pixels) << "other images";
  EXPECT_EQ(other.read(7, two).pixels, plain.read(7, two).pixels) << "nothing is expected any more";
  other.read_ahead([](std::uint64_t number) { return std::optional(data::ImageRequest{number, three}); });
  EXPECT_EQ(other.read(3, three).pixels, plain.read(3, three).pixels) << "another step";
  const std::vector<std::uint8_t> third = plain.read(3, three).pixels;
  EXPECT_NE(third, plain.read(4, three).pixels) << "steps are augmented apart";
}

}  // namespace
}  // namespace mylos::tasks
