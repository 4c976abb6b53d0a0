#include "families/resnet/resnet_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/files/json.hpp"
#include "data/huggingface/model_type.hpp"
#include "data/huggingface/pretrained.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/written_models.hpp"

namespace mylos::families {
namespace {

using ::testing::ElementsAre;
using tests::error_of;

ResnetConfig parse_resnet(const Json& json) { return read_resnet_config({parse_json(json.dump(), "F"), "F"}); }

std::string resnet_message(const char* key, const Json& value) {
  Json json = {{"model_type", "resnet"}};
  json[key] = value;
  return error_of([&] { parse_resnet(json); });
}

TEST(ResnetConfig, AbsentKeysTakeHuggingFacesDefaults) {
  const ResnetConfig config = parse_resnet({{"model_type", "resnet"}});
  EXPECT_EQ(config, ResnetConfig());
  EXPECT_TRUE(config.shape.bottleneck);
  EXPECT_THAT(config.shape.depths, ElementsAre(3, 4, 6, 3));
  EXPECT_THAT(config.labels, ElementsAre("LABEL_0", "LABEL_1"));
}

TEST(ResnetConfig, LabelsAreThoseOfId2labelByTheirNumbers) {
  Json names;
  for (int i = 0; i < 12; ++i) names[std::to_string(i)] = "kind " + std::to_string(i);
  const ResnetConfig config = parse_resnet({{"model_type", "resnet"}, {"id2label", names}});
  ASSERT_EQ(config.labels.size(), 12u);
  EXPECT_EQ(config.labels[10], "kind 10") << "10 stands before 2 in the file";
  EXPECT_THAT(parse_resnet({{"model_type", "resnet"}, {"num_labels", 3}}).labels,
              ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
}

TEST(ResnetConfig, WhatIsWrittenIsReadAgain) {
  ResnetConfig config;
  ResnetShape& shape = config.shape;
  shape.channels = 1;
  shape.embedding = 8;
  shape.hidden = {8, 16};
  shape.depths = {2, 1};
  shape.bottleneck = false;
  shape.downsample_in_first_stage = shape.downsample_in_bottleneck = true;
  config.labels = {"b", "a", "c"};
  for (const ImageStem stem : {ImageStem::imagenet, ImageStem::cifar}) {
    shape.stem = stem;
    const OrderedJson json = resnet_config_json(config);
    EXPECT_EQ(parse_resnet(Json(json)), config);
    EXPECT_EQ(json.contains(resnet_stem_key), stem == ImageStem::cifar);
    EXPECT_EQ(json["label2id"]["a"], 1);
    EXPECT_EQ(json["layer_type"], "basic");
  }
}

TEST(ResnetConfig, KnownModelsAreTorchvisions) {
  EXPECT_THAT(known_resnet("resnet18")->shape.hidden, ElementsAre(64, 128, 256, 512));
  EXPECT_FALSE(known_resnet("resnet34")->shape.bottleneck);
  EXPECT_THAT(known_resnet("resnet101")->shape.depths, ElementsAre(3, 4, 23, 3));
  EXPECT_THAT(known_resnet("resnet152")->shape.depths, ElementsAre(3, 8, 36, 3));
  const ResnetConfig fifty = known_resnet("resnet50").value();
  EXPECT_EQ(fifty.shape, ResnetShape());
  EXPECT_EQ(fifty.labels.size(), 1000u);
  EXPECT_FALSE(known_resnet("microsoft/resnet-50")) << "is fetched with its weights";
}

TEST(ResnetConfig, TimmNamesAnArchitecture) {
  const Json timm = {{"architecture", "resnet34"}, {"num_classes", 7}};
  EXPECT_EQ(data::model_type_of(timm, "F"), "resnet");
  const ResnetConfig config = parse_resnet(timm);
  EXPECT_EQ(config.shape, known_resnet("resnet34")->shape);
  EXPECT_EQ(config.labels.size(), 7u);
  EXPECT_EQ(error_of([] {
              parse_resnet({{"architecture", "resnet50d"}});
            }),
            "F: architecture = \"resnet50d\" is not supported; only resnet18, resnet34, resnet50, resnet101 and "
            "resnet152 are");
}

TEST(ResnetConfig, ErrorsNameTheKeyAndItsValue) {
  EXPECT_THAT(resnet_message("model_type", "vit"), ::testing::StartsWith("F: model_type is \"vit\""));
  EXPECT_EQ(error_of([] { parse_resnet(Json::object()); }),
            "F: no \"model_type\"; add \"model_type\": \"resnet\" if it is a ResNet");
  EXPECT_EQ(resnet_message("layer_type", "wide"),
            "F: layer_type = \"wide\" is not supported; only \"basic\" and \"bottleneck\" are");
  EXPECT_EQ(resnet_message("hidden_act", "gelu"), "F: hidden_act = \"gelu\" is not supported; only \"relu\" is");
  EXPECT_EQ(resnet_message("num_channels", 4), "F: num_channels = 4 is not a whole number from 1 to 3");
  EXPECT_EQ(resnet_message("depths", {3, 0}), "F: depths = [3,0] is not a list of whole numbers from 1 to 1024");
  EXPECT_EQ(resnet_message("depths", {3}), "F: 4 hidden_sizes and 1 depths; each stage has one of both");
  EXPECT_EQ(resnet_message("hidden_sizes", {256, 512, 1024, 6}),
            "F: hidden_sizes has 6; with layer_type \"bottleneck\" each is a multiple of 4");
  EXPECT_EQ(resnet_message("id2label", {{"1", "a"}}),
            "F: id2label: \"1\": \"a\" is not the name of one of its labels 0 to 0");
  EXPECT_EQ(resnet_message("id2label", 3), "F: id2label is not an object of label names");
  EXPECT_EQ(resnet_message(resnet_stem_key, "deep"),
            "F: mylos_stem = \"deep\" is not supported; only \"imagenet\" and \"cifar\" are");
  EXPECT_EQ(error_of([] {
              parse_resnet({{"model_type", "resnet"}, {"num_labels", 2}, {"id2label", {{"0", "a"}}}});
            }),
            "F: num_labels = 2, but id2label has 1");
}

TEST(ResnetConfig, TheRecordedDirectoriesAreRead) {
  const std::filesystem::path tiny = tests::shared_reference() / "resnet" / "basic-tiny";
  if (!std::filesystem::exists(tiny)) GTEST_SKIP() << tiny << " is not there";
  const ResnetConfig config = read_resnet_config({FileReader(), tiny / "config.json"});
  EXPECT_THAT(config.shape.hidden, ElementsAre(8, 16));
  EXPECT_EQ(config.labels.size(), 5u);
  EXPECT_EQ(read_resnet_config(data::PretrainedModel(FileReader(), tiny)), config);
}

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
