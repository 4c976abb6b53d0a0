#include "families/resnet/resnet_shape.hpp"

#include "families/resnet/resnet_config.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::families {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_of;

ResnetShape known_shape(std::string_view name) { return known_resnet(name).value().shape; }

/// Returns the number of weights of a known model's convolutions, BatchNorm layers and head of 1000 labels.
std::size_t parameters(std::string_view name) {
  const ResnetShape shape = known_shape(name);
  check_shape(shape);
  const auto of = [](const ConvolutionShape& c) { return c.terms() * c.out + 2 * c.out; };
  std::size_t sum = of(stem_convolution(shape)) + (shape.hidden.back() + 1) * 1000;
  for (const auto& stage : resnet_stages(shape)) {
    for (const ResnetBlockShape& block : stage) {
      for (const ConvolutionShape& layer : block.layers) sum += of(layer);
      if (block.shortcut) sum += of(*block.shortcut);
    }
  }
  return sum;
}

TEST(ResnetShape, KnownNamesHaveTorchvisionsParameters) {
  EXPECT_EQ(parameters("resnet18"), 11689512u);
  EXPECT_EQ(parameters("resnet34"), 21797672u);
  EXPECT_EQ(parameters("resnet50"), 25557032u);
  EXPECT_EQ(parameters("resnet101"), 44549160u);
  EXPECT_EQ(parameters("resnet152"), 60192808u);
  EXPECT_FALSE(known_resnet("resnet51"));
}

TEST(ResnetShape, SizesFollowFromTheImages) {
  ResnetShape shape = known_shape("resnet50");
  const auto sizes = [&] {
    std::vector<std::size_t> all;
    for (const auto& stage : resnet_stages(shape)) all.push_back(stage.back().last().out_height());
    return all;
  };
  EXPECT_THAT(sizes(), ElementsAre(56, 28, 14, 7));
  shape.downsample_in_first_stage = true;
  EXPECT_THAT(sizes(), ElementsAre(28, 14, 7, 4));
  shape.stem = ImageStem::cifar;
  shape.height = shape.width = 32;
  EXPECT_THAT(sizes(), ElementsAre(16, 8, 4, 2));
  shape.downsample_in_first_stage = false;
  EXPECT_THAT(sizes(), ElementsAre(32, 16, 8, 4));
}

TEST(ResnetShape, ABottlenecksStrideStandsWhereTheShapeSays) {
  ResnetShape shape = known_shape("resnet50");
  const auto strides = [&] {
    const ResnetBlockShape block = resnet_stages(shape)[1].front();
    return std::vector<std::size_t>{block.layers[0].stride, block.layers[1].stride, block.layers[2].stride,
                                    block.shortcut.value().stride};
  };
  EXPECT_THAT(strides(), ElementsAre(1, 2, 1, 2));
  shape.downsample_in_bottleneck = true;
  EXPECT_THAT(strides(), ElementsAre(2, 1, 1, 2));
  EXPECT_TRUE(resnet_stages(shape)[0][0].shortcut);  // 64 channels become 256
  EXPECT_FALSE(resnet_stages(shape)[0][1].shortcut);
  EXPECT_FALSE(resnet_stages(known_shape("resnet18"))[0][0].shortcut);
}

TEST(ResnetShape, RefusesPartsThatDoNotFit) {
  const auto message = [](const auto& change) {
    ResnetShape shape = known_shape("resnet50");
    change(shape);
    return error_of([&] { check_shape(shape); });
  };
  EXPECT_THAT(message([](ResnetShape& s) { s.depths.pop_back(); }),
              HasSubstr("ResNet: 4 stages have channels and 3 have depths"));
  EXPECT_THAT(message([](ResnetShape& s) { s.depths[2] = 0; }), HasSubstr("ResNet: stage 2 has no blocks"));
  EXPECT_THAT(message([](ResnetShape& s) { s.hidden[1] = 6; }),
              HasSubstr("ResNet: the 6 channels of stage 1 are not a multiple of 4"));
  EXPECT_THAT(message([](ResnetShape& s) { s.embedding = 0; }), HasSubstr("ResNet: 0 channels behind the stem"));
  EXPECT_THAT(message([](ResnetShape& s) { s.channels = 1; }),
              HasSubstr("ResNet: images of 1 channels, 3 means and 3 deviations"));
  EXPECT_THAT(message([](ResnetShape& s) { s.deviation[1] = 0.0f; }),
              HasSubstr("a deviation of pixels is not above 0"));
  EXPECT_THAT(message([](ResnetShape& s) { s.width = 0; }),
              HasSubstr("ResNet: images of 224 x 0 pixels are too small"));
}

TEST(ResnetShape, PixelsHaveItsMeansAndDeviations) {
  const PixelNormalization normalization = pixel_normalization(known_shape("resnet18"));
  EXPECT_EQ(normalization.channels, 3u);
  EXPECT_EQ(normalization.mean[2], 0.406f);
  EXPECT_EQ(normalization.deviation[1], 0.224f);
}

}  // namespace
}  // namespace mylos::families
