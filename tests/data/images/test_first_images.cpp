#include "data/images/first_images.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/images/listed_images.hpp"
#include "tests/data/images/recorded_images.hpp"
#include "tests/data/images/small_images.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;

TEST(FirstImages, KeepTheirLabelsAndPixels) {
  const tests::TemporaryDirectory directory;
  tests::write_small_digits(directory.path(), 15, 0);
  const auto all = open_images(FileReader(), directory.path().string(), ImagePart::training);
  const auto first = first_images(open_images(FileReader(), directory.path().string(), ImagePart::training), 3);
  ASSERT_EQ(first->size(), 3u);
  EXPECT_THAT(first->labels(), ElementsAre(0, 1, 2));
  EXPECT_EQ(first->label_names(), all->label_names());
  EXPECT_EQ(first->shape(), all->shape());
  EXPECT_EQ(first->encoded(2), all->encoded(2));
  EXPECT_EQ(first->location(2), all->location(2));
  EXPECT_EQ(first_images(open_images(FileReader(), directory.path().string(), ImagePart::training), 99)->size(), 15u);
}

TEST(ListedImages, AreTheFilesThatAreNamed) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "a.png", tests::recorded_image_file("decoded.jsonl", "png RGB"));
  const auto set = list_images({directory / "a.png", directory / "a.png"});
  EXPECT_EQ(set->size(), 2u);
  EXPECT_EQ(set->name(1), (directory / "a.png").string());
  EXPECT_EQ(set->decode(0).shape.channels, 3u);
  EXPECT_THAT(tests::error_of([&] { list_images({directory / "b.png"}); }), EndsWith("b.png is not there"));
  EXPECT_THAT(tests::error_of([&] { list_images({directory.path()}); }), EndsWith("is a directory, not an image"));
  tests::write_file(directory / "c.png", "no picture");
  const std::filesystem::path damaged = directory / "c.png";
  EXPECT_EQ(tests::error_of_file(damaged, [&] { list_images({damaged})->decode(0); }), "F: is neither JPEG nor PNG")
      << "`mylos prepare` takes no list of pictures";
}

}  // namespace
}  // namespace mylos::data
