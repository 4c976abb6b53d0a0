#include "families/resnet/resnet_tensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "data/huggingface/pretrained.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/written_models.hpp"

namespace mylos::families {
namespace {

using ::testing::HasSubstr;
using tests::error_of;

TEST(ResnetTensors, TorchvisionsAndTimmsNamesBecomeTransformers) {
  const std::string stem = "resnet.embedder.embedder.", stages = "resnet.encoder.stages.";
  EXPECT_EQ(canonical_resnet_name("conv1.weight"), stem + "convolution.weight");
  EXPECT_EQ(canonical_resnet_name("bn1.running_var"), stem + "normalization.running_var");
  EXPECT_EQ(canonical_resnet_name("layer1.0.conv1.weight"), stages + "0.layers.0.layer.0.convolution.weight");
  EXPECT_EQ(canonical_resnet_name("layer4.22.conv3.weight"), stages + "3.layers.22.layer.2.convolution.weight");
  EXPECT_EQ(canonical_resnet_name("layer2.1.bn2.num_batches_tracked"),
            stages + "1.layers.1.layer.1.normalization.num_batches_tracked");
  EXPECT_EQ(canonical_resnet_name("layer3.0.downsample.0.weight"), stages + "2.layers.0.shortcut.convolution.weight");
  EXPECT_EQ(canonical_resnet_name("layer3.0.downsample.1.bias"), stages + "2.layers.0.shortcut.normalization.bias");
  EXPECT_EQ(canonical_resnet_name("fc.weight"), "classifier.1.weight");
  EXPECT_EQ(canonical_resnet_name("module.fc.bias"), "classifier.1.bias");
  EXPECT_EQ(canonical_resnet_name("embedder.embedder.convolution.weight"), stem + "convolution.weight");
  EXPECT_EQ(canonical_resnet_name("encoder.stages.0.layers.0.layer.0.convolution.weight"),
            stages + "0.layers.0.layer.0.convolution.weight");
}

TEST(ResnetTensors, OtherNamesStay) {
  for (const char* name : {"resnet.embedder.embedder.convolution.weight", "classifier.1.weight",
                           "layer0.0.conv1.weight", "layer1.0.conv0.weight", "layer1.x.conv1.weight",
                           "layer1.0.se.fc.weight", "layer12345.0.conv1.w", "layer1", ""}) {
    EXPECT_EQ(canonical_resnet_name(name), name);
  }
}

TEST(ResnetTensors, TheClassifierIsIgnoredWhereAnotherIsBegun) {
  EXPECT_EQ(resnet_tensor_naming(true).is_ignored, nullptr);
  EXPECT_TRUE(resnet_tensor_naming(false).is_ignored("classifier.1.weight"));
  EXPECT_FALSE(resnet_tensor_naming(false).is_ignored("resnet.embedder.embedder.convolution.weight"));
}

TEST(ResnetTensors, CountsOfBatchesAreWholeNumbersInFiles) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "config.json", "{}");
  const data::TensorShape weight{"bn1.weight", {2}}, count{"bn1.num_batches_tracked", {}, true}, bias{"bn1.bias", {1}};
  EXPECT_TRUE(is_batch_count(count.name));
  for (const Precision type : {Precision::float32, Precision::bfloat16}) {
    data::SafetensorsWriter writer(directory / "model.safetensors", std::vector{weight, count, bias}, type);
    writer.write(std::vector{0.5f, 2.0f, 123456.0f});
    writer.write(std::vector{3.0f});
    writer.commit();
    const data::SafetensorsFile file(FileReader(), directory / "model.safetensors");
    EXPECT_EQ(file.find("bn1.num_batches_tracked")->type, "I64");
    EXPECT_EQ(file.read_integer("bn1.num_batches_tracked"), std::vector<std::int64_t>{123456});
    const std::vector<data::TensorSpec> wanted{
        {"resnet.embedder.embedder.normalization.weight", {2}},
        {"resnet.embedder.embedder.normalization.bias", {1}},
        {"resnet.embedder.embedder.normalization.num_batches_tracked", {}, true, true}};
    std::vector<float> values;
    data::PretrainedModel(FileReader(), directory.path())
        .read_weights(FileReader(), wanted, resnet_tensor_naming(true),
                      [&](std::size_t row, const data::TensorReader& read) {
                        std::vector<float> part(data::element_count(wanted[row].shape, "it"));
                        read(0, part);
                        values.insert(values.end(), part.begin(), part.end());
                      });
    EXPECT_EQ(values, (std::vector{0.5f, 2.0f, 3.0f, 123456.0f}));
  }
}

TEST(ResnetTensors, ACountOfAnotherTypeIsRefused) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "config.json", "{}");
  const std::vector<float> one{1.0f};
  data::write_safetensors(directory / "model.safetensors",
                          std::vector{data::NamedTensor{"bn1.num_batches_tracked", {}, one}});
  const std::vector<data::TensorSpec> wanted{
      {"resnet.embedder.embedder.normalization.num_batches_tracked", {}, true, true}};
  EXPECT_THAT(error_of([&] {
                data::PretrainedModel(FileReader(), directory.path())
                    .read_weights(FileReader(), wanted, resnet_tensor_naming(true), {});
              }),
              HasSubstr("has type F32; counts are I64 or I32"));
}

}  // namespace
}  // namespace mylos::families
