#include "data/huggingface/image_processor.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using tests::error_of;

class ImageProcessorFile : public testing::Test {
 protected:
  ImageProcessor read(const std::string& text, const char* name = image_processor_file) {
    tests::write_file(directory_ / name, text);
    return *read_image_processor(FileReader(), directory_.path());
  }
  std::string message(const std::string& text) {
    return error_of([&] { read(text); });
  }

  tests::TemporaryDirectory directory_;
};

TEST_F(ImageProcessorFile, OfMicrosoftsResnet) {
  const ImageProcessor processor = read(R"({"crop_pct": 0.875, "do_normalize": true, "do_resize": true,
    "feature_extractor_type": "ConvNextFeatureExtractor", "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225], "resample": 3, "size": 224})");
  EXPECT_THAT(processor.mean, ElementsAre(0.485f, 0.456f, 0.406f));
  EXPECT_THAT(processor.deviation, ElementsAre(0.229f, 0.224f, 0.225f));
  EXPECT_EQ(processor.size, 224u);
  EXPECT_EQ(processor.crop_fraction, 0.875);
  EXPECT_TRUE(processor.is_bicubic);
  EXPECT_FALSE(processor.warps);
}

TEST_F(ImageProcessorFile, OfConvNextCropsBelow384PixelsAndWarpsFromThereOn) {
  const ImageProcessor small = read(R"({"size": {"shortest_edge": 224}, "resample": 2})");
  EXPECT_EQ(small.crop_fraction, 0.875);
  EXPECT_FALSE(small.warps);
  EXPECT_FALSE(small.is_bicubic);
  const ImageProcessor large = read(R"({"size": {"shortest_edge": 384}, "crop_pct": 0.875})");
  EXPECT_EQ(large.crop_fraction, 1.0);
  EXPECT_TRUE(large.warps);
}

/// The defaults of each class in transformers.
TEST_F(ImageProcessorFile, AbsentKeysTakeTheDefaultsOfTheClass) {
  const std::vector<float> halves(3, 0.5f), clip_mean = {0.48145466f, 0.4578275f, 0.40821073f},
                                            clip_deviation = {0.26862954f, 0.26130258f, 0.27577711f};
  const auto of = [&](const char* name) { return read(fmt::format(R"({{"image_processor_type": "{}"}})", name)); };
  EXPECT_EQ(read("{}"), (ImageProcessor{halves, halves, 384, 1.0, true, false}));
  EXPECT_EQ(of("ConvNextImageProcessorFast"), read("{}"));
  EXPECT_EQ(of("ViTImageProcessor"), (ImageProcessor{halves, halves, 224, 1.0, true, false}));
  EXPECT_EQ(of("DeiTImageProcessor"), (ImageProcessor{halves, halves, 224, 0.875, true, true}));
  for (const char* const name : {"BitImageProcessor", "CLIPFeatureExtractor"}) {
    EXPECT_EQ(of(name), (ImageProcessor{clip_mean, clip_deviation, 224, 1.0, false, true})) << name;
  }
}

TEST_F(ImageProcessorFile, OtherClassesAreRefused) {
  EXPECT_THAT(message(R"({"image_processor_type": "BeitImageProcessor"})"),
              EndsWith("preprocessor_config.json: image_processor_type = \"BeitImageProcessor\" is not supported; only "
                       "those of ConvNext, ViT, DeiT, Bit and CLIP are"));
  EXPECT_THAT(message(R"({"feature_extractor_type": 3})"), HasSubstr("feature_extractor_type = 3 is not supported"));
}

TEST_F(ImageProcessorFile, OnlyClassesThatCropReadTheCrop) {
  for (const char* const name : {"ConvNextImageProcessor", "ViTImageProcessor"}) {
    const std::string text = R"("size": 96, "crop_size": 64, "do_center_crop": true)";
    EXPECT_EQ(read(fmt::format(R"({{"image_processor_type": "{}", {}}})", name, text)).size, 96u) << name;
  }
  const std::string bit = R"({"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 224}, )";
  EXPECT_THAT(message(bit + R"("crop_size": 256})"),
              EndsWith("crop_size = 256 is larger than size = 224, which would pad images and is not supported"));
  EXPECT_THAT(message(bit + R"("do_center_crop": false})"),
              EndsWith("do_center_crop = false without a size of height and width is not supported"));
  EXPECT_EQ(read(bit + R"("crop_pct": 0.5})").crop_fraction, 1.0);
}

TEST_F(ImageProcessorFile, ImagesThatAreNotResizedAreRefused) {
  EXPECT_THAT(message(R"({"do_resize": false})"), EndsWith("do_resize = false is not supported; only true is"));
}

TEST_F(ImageProcessorFile, BothSidesMeanNoCrop) {
  for (const char* text : {R"({"size": {"height": 96, "width": 96}, "crop_pct": 0.875})",
                           R"({"size": 96, "image_processor_type": "ViTImageProcessorFast"})"}) {
    const ImageProcessor processor = read(text);
    EXPECT_EQ(processor.size, 96u) << text;
    EXPECT_EQ(processor.crop_fraction, 1.0) << text;
    EXPECT_TRUE(processor.warps) << text;
  }
  const std::string deit = R"({"image_processor_type": "DeiTImageProcessor", )";
  const ImageProcessor cut = read(deit + R"("size": {"height": 256, "width": 256}, "crop_size": 224})");
  EXPECT_EQ(cut.crop_fraction, 0.875);
  EXPECT_TRUE(cut.warps);
  const ImageProcessor whole =
      read(deit + R"("size": {"height": 64, "width": 64}, "crop_size": 32, "do_center_crop": false})");
  EXPECT_EQ(whole.size, 64u);
  EXPECT_EQ(whole.crop_fraction, 1.0);
}

TEST_F(ImageProcessorFile, OtherFiltersAreRefused) {
  EXPECT_THAT(message(R"({"resample": 1})"),
              EndsWith("resample = 1 is not supported; only 2 (bilinear) and 3 (bicubic) are"));
  EXPECT_THAT(message(R"({"resample": "bicubic"})"), EndsWith("only 2 (bilinear) and 3 (bicubic) are"));
  const std::string timm = R"({"architecture": "resnet18", "pretrained_cfg": {"interpolation": )";
  std::filesystem::remove(directory_ / image_processor_file);
  EXPECT_TRUE(read(timm + R"("bicubic"}})", "config.json").is_bicubic);
  EXPECT_FALSE(read(timm + R"("bilinear"}})", "config.json").is_bicubic);
  EXPECT_THAT(error_of([&] { read(timm + R"("random"}})", "config.json"); }),
              EndsWith("interpolation = \"random\" is not supported; only bilinear and bicubic are"));
}

TEST_F(ImageProcessorFile, SizesInTheirOtherForms) {
  EXPECT_EQ(read(R"({"size": {"shortest_edge": 96}})").size, 96u);
  EXPECT_EQ(read(R"({"size": {"height": 64, "width": 64}})").size, 64u);
  const ImageProcessor cut = read(R"({"feature_extractor_type": "CLIPFeatureExtractor", "size": {"shortest_edge": 256},
    "crop_size": {"height": 224, "width": 224}})");
  EXPECT_EQ(cut.size, 224u);
  EXPECT_EQ(cut.crop_fraction, 0.875);
}

TEST_F(ImageProcessorFile, WithoutNormalizationPixelsAreOnlyScaled) {
  for (const char* mean : {R"(, "image_mean": [0.5], "image_std": [0.2])", ""}) {
    const ImageProcessor processor = read(std::string(R"({"do_normalize": false)") + mean + "}");
    EXPECT_THAT(processor.mean, ElementsAre(0.0f));
    EXPECT_THAT(processor.deviation, ElementsAre(1.0f));
  }
}

TEST_F(ImageProcessorFile, TimmsSizesAreBounded) {
  for (const char* size : {"[3, 4294967296, 4294967296]", "[3, 288, 224]", "[288]", "[3, 0, 0]", "288"}) {
    const std::string text =
        std::string(R"({"architecture": "resnet18", "pretrained_cfg": {"input_size": )") + size + "}}";
    EXPECT_THAT(error_of([&] { read(text, "config.json"); }),
                EndsWith(" is not the size of a square of 1 to 16384 pixels"))
        << size;
  }
}

TEST_F(ImageProcessorFile, TimmsStandInItsConfiguration) {
  const ImageProcessor processor = read(
      R"({"architecture": "resnet18", "pretrained_cfg": {"mean": [0.1, 0.2, 0.3], "std": [1, 2, 3], "crop_pct": 0.95,
          "input_size": [3, 288, 288]}})",
      "config.json");
  EXPECT_THAT(processor.mean, ElementsAre(0.1f, 0.2f, 0.3f));
  EXPECT_EQ(processor.size, 288u);
  EXPECT_EQ(processor.crop_fraction, 0.95);
}

TEST_F(ImageProcessorFile, NeitherFileIsNoProcessor) {
  EXPECT_FALSE(read_image_processor(FileReader(), directory_.path()));
  tests::write_file(directory_ / "config.json", R"({"model_type": "resnet"})");
  EXPECT_FALSE(read_image_processor(FileReader(), directory_.path()));
}

TEST_F(ImageProcessorFile, WhatIsWrittenIsReadAgain) {
  const ImageProcessor processor{{0.25f, 0.5f, 0.75f}, {0.1f, 0.2f, 0.3f}, 32, 1.0};
  EXPECT_EQ(read(image_processor_json(processor).dump()), processor);
  const auto class_of = [&](const ImageProcessor& written) {
    const OrderedJson json = image_processor_json(written);
    EXPECT_EQ(read(json.dump()), written) << json;
    return json["image_processor_type"].get<std::string>();
  };
  const std::vector<float> channels = {0.25f};
  EXPECT_EQ(class_of({channels, channels, 224, 0.875, false, true}), "ConvNextImageProcessor");
  EXPECT_EQ(class_of({channels, channels, 384, 384.0 / 439, false, true}), "BitImageProcessor");
  EXPECT_EQ(class_of({channels, channels, 384, 1.0, true, false}), "ViTImageProcessor");
  EXPECT_EQ(class_of({channels, channels, 224, 0.875, true, false}), "DeiTImageProcessor");
}

TEST_F(ImageProcessorFile, ErrorsNameTheFileAndTheKey) {
  EXPECT_THAT(message(R"({"image_mean": [0.5], "image_std": [0]})"),
              EndsWith("preprocessor_config.json: image_std = [0] is not a list of one or three numbers above 0"));
  EXPECT_THAT(message(R"({"image_mean": "grey"})"),
              EndsWith("image_mean = \"grey\" is not a list of one or three numbers"));
  EXPECT_THAT(message(R"({"image_mean": [0.5]})"), EndsWith("a mean of 1 channels and a deviation of 3"));
  EXPECT_THAT(message(R"({"image_mean": [0.1, 0.9], "image_std": [0.1, 0.9]})"),
              EndsWith("image_mean = [0.1,0.9] is not a list of one or three numbers"));
  EXPECT_THAT(message(R"({"size": {"height": 3, "width": 4}})"),
              EndsWith("is not the size of a square of 1 to 16384 pixels"));
  EXPECT_THAT(message(R"({"do_rescale": false})"), EndsWith("is not supported; only 1/255 is"));
  EXPECT_THAT(message(R"({"rescale_factor": 0.5})"), EndsWith("is not supported; only 1/255 is"));
}

}  // namespace
}  // namespace mylos::data
