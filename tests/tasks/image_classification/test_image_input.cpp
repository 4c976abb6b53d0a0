#include "tasks/image_classification/image_input.hpp"

#include "tests/data/images/small_images.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace mylos::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_of;

std::unique_ptr<data::ImageSet> drawn(const std::string& size, std::size_t labels = 10) {
  return data::open_images(FileReader(), "synthetic:4x" + size, data::ImagePart::training,
                           {.synthetic_labels = labels});
}

const data::ImageProcessor of_directory{{0.1f, 0.2f, 0.3f}, {0.4f, 0.5f, 0.6f}, 64, 0.9};

TEST(ImageInput, TheSizeIsTheDatasInTrainingAndTheModelsElsewhere) {
  const auto set = drawn("48x40");
  const auto size = [&](const auto& processor, const data::ImageSet* data, PreferredSize preferred) {
    return resolve_input({}, processor, data, 3, preferred).size;
  };
  const std::optional<data::ImageProcessor> none, own = of_directory;
  EXPECT_EQ(size(own, set.get(), PreferredSize::data), 40u) << "the shorter side";
  EXPECT_EQ(size(own, set.get(), PreferredSize::model), 64u);
  EXPECT_EQ(size(none, set.get(), PreferredSize::model), 40u);
  EXPECT_EQ(size(own, nullptr, PreferredSize::data), 64u);
  EXPECT_EQ(size(none, nullptr, PreferredSize::data), 224u);
  ImageConfig reported;
  reported.image_size = 17;
  EXPECT_EQ(resolve_input(reported, own, set.get(), 3, PreferredSize::model).size, 17u);
}

TEST(ImageInput, MeansAreThoseThatWereGivenElseTheDirectorysElseTheDataSets) {
  const auto cifar = drawn("32x32"), fine = drawn("32x32", 100), large = drawn("64x64");
  const auto mean = [](const ImageConfig& config, const auto& processor, const data::ImageSet& set) {
    return resolve_input(config, processor, &set, 3, PreferredSize::data).mean;
  };
  const std::optional<data::ImageProcessor> none;
  EXPECT_THAT(mean({}, none, *cifar), ElementsAre(0.4914f, 0.4822f, 0.4465f));
  EXPECT_THAT(mean({}, none, *fine), ElementsAre(0.5071f, 0.4865f, 0.4409f));
  EXPECT_THAT(mean({}, none, *large), ElementsAre(0.485f, 0.456f, 0.406f));
  EXPECT_THAT(mean({}, std::optional(of_directory), *cifar), ElementsAre(0.1f, 0.2f, 0.3f));
  ImageConfig reported;
  reported.mean = {0.5f};
  EXPECT_THAT(mean(reported, std::optional(of_directory), *cifar), ElementsAre(0.5f, 0.5f, 0.5f));
  reported.mean = {0.5f, 0.6f, 0.7f};
  EXPECT_EQ(error_of([&] { resolve_input(reported, none, cifar.get(), 1, PreferredSize::data); }),
            "--mean: 3 numbers for images of 1 channel");
}

TEST(ImageInput, GreyDataHaveMnistsMeanInEveryChannel) {
  const tests::TemporaryDirectory directory;
  tests::write_small_digits(directory.path(), 10, 0);
  const auto set = data::open_images(FileReader(), directory.path().string(), data::ImagePart::training);
  EXPECT_THAT(resolve_input({}, {}, set.get(), 1, PreferredSize::data).deviation, ElementsAre(0.3081f));
  EXPECT_THAT(resolve_input({}, {}, set.get(), 3, PreferredSize::data).mean, ElementsAre(0.1307f, 0.1307f, 0.1307f));
  const auto colours = drawn("64x64");
  EXPECT_NEAR(resolve_input({}, {}, colours.get(), 1, PreferredSize::data).mean.front(), 0.449, 1e-6);
}

TEST(ImageInput, TheCroppedPartIsTheDirectorysAtItsOwnSize) {
  const auto set = drawn("64x64"), other = drawn("48x48");
  const std::optional<data::ImageProcessor> own = of_directory;
  EXPECT_EQ(resolve_input({}, own, set.get(), 3, PreferredSize::data).crop_fraction, 0.9);
  EXPECT_EQ(resolve_input({}, own, other.get(), 3, PreferredSize::data).crop_fraction, 1.0);
  EXPECT_EQ(resolve_input({}, {}, nullptr, 3, PreferredSize::data).crop_fraction, 0.875);
}

TEST(ImageInput, ResizesAsTheDirectorySays) {
  const auto set = drawn("64x64"), other = drawn("48x48");
  std::optional<data::ImageProcessor> own = of_directory;
  EXPECT_EQ(resolve_input({}, own, set.get(), 3, PreferredSize::data).resampling, data::Resampling::bilinear);
  own->is_bicubic = own->warps = true;
  const data::TransformOptions options = transform_options(resolve_input({}, own, set.get(), 3, PreferredSize::data));
  EXPECT_EQ(options.resampling, data::Resampling::bicubic);
  EXPECT_TRUE(options.warps);
  EXPECT_FALSE(resolve_input({}, own, other.get(), 3, PreferredSize::data).warps) << "of another size";
}

TEST(ImageInput, ImagesAreAtLeastAsLargeAsTheFirstConvolution) {
  EXPECT_NO_THROW(check_size_for_stem(7, families::ImageStem::imagenet));
  EXPECT_NO_THROW(check_size_for_stem(3, families::ImageStem::cifar));
  EXPECT_THAT(error_of([] { check_size_for_stem(6, families::ImageStem::imagenet); }),
              HasSubstr("images of 6 x 6 pixels are smaller than the imagenet stem's first convolution, 7 x 7; use a "
                        "larger --image-size, or --stem cifar"));
  EXPECT_THAT(error_of([] { check_size_for_stem(2, families::ImageStem::cifar); }), HasSubstr("3 x 3; use a larger"));
}

TEST(ImageInput, ChannelsAreConvertedAsPillowDoes) {
  const std::vector<std::uint8_t> grey{0, 100, 255}, colours{255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30};
  EXPECT_THAT(convert_channels(grey, 1, 3), ElementsAre(0, 0, 0, 100, 100, 100, 255, 255, 255));
  // Pillow gives 76, 150, 29 and 18.
  EXPECT_THAT(convert_channels(colours, 3, 1), ElementsAre(76, 150, 29, 18));
  EXPECT_EQ(convert_channels(colours, 3, 3), colours);
  EXPECT_THROW(convert_channels(grey, 1, 2), std::invalid_argument);
}

}  // namespace
}  // namespace mylos::tasks
