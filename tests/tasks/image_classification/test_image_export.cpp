
#include "data/huggingface/label_names.hpp"
#include "families/resnet/resnet_body.hpp"
#include "families/resnet/resnet_config.hpp"
#include "tasks/image_classification/classifier_model.hpp"
#include "tests/tasks/image_classification/small_classifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <optional>

namespace mylos::tasks {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using tests::error_of;
using TensorValues = std::map<std::string, std::vector<float>>;

const ImageInput input{.size = 12, .channels = 1, .mean = {0.1307f}, .deviation = {0.3081f}, .crop_fraction = 1.0};

/// Returns values of a model that count up through all tensors.
TensorValues numbered_values(const ParameterTable& table) {
  TensorValues values;
  float next = 1.0f;
  const auto add = [&](const ParameterTensor& row) {
    std::vector<float>& row_values = values[row.name];
    row_values.resize(row.size);
    std::iota(row_values.begin(), row_values.end(), next);
    next += static_cast<float>(row.size);
  };
  for (const ParameterTensor& row : table.tensors()) add(row);
  for (const ParameterTensor& row : table.state_tensors()) add(row);
  return values;
}

std::unique_ptr<nn::Model> network_of(const families::ImageModel& model, const ImageInput& images) {
  return model.network(format_of(images), 0.0f, Precision::float32);
}

class ImageDirectory : public testing::Test {
 protected:
  void SetUp() override {
    tests::write_small_classifier(model_);
    images_ = families::read_image_model({FileReader(), model_ / "config.json"});
    network_ = network_of(*images_, input);
    values_ = numbered_values(table());
    write(exported_, 5);
  }
  const ParameterTable& table() const { return network_->table(); }

  /// Exports the values in pieces of this many elements.
  void write(const std::filesystem::path& directory, std::size_t piece) const {
    const auto exporter = image_exporter(*images_, input, table(), Precision::float32);
    const auto exported = exporter->start(directory, {});
    const auto add = [&](const ParameterTensor& row) {
      const std::vector<float>& values = values_.at(row.name);
      for (std::size_t begin = 0; begin < values.size(); begin += piece) {
        exported->write(row, begin, std::span(values).subspan(begin, std::min(piece, values.size() - begin)));
      }
    };
    for (const ParameterTensor& row : table().tensors()) add(row);
    for (const ParameterTensor& row : table().state_tensors()) add(row);
    exported->commit();
  }
  /// Reads the tensors of a directory, in the layout of kernels.
  TensorValues read(const std::filesystem::path& directory, bool trains = true, bool new_classifier = false) {
    ClassifierModel model = read_classifier(FileReader(), directory);
    model.new_classifier = new_classifier;
    TensorValues values;
    notices_.clear();
    const train::TensorWriter writer([&](const std::string& name, const train::ValueReader& take) {
      std::vector<float>& row = values[name];
      row.resize(values_.at(name).size());
      take(0, row);
    });
    read_classifier_weights(FileReader(), model, table(), trains, writer,
                            [&](const std::string& line) { notices_ += line; });
    return values;
  }
  /// Writes a directory with the exported tensors, renamed by `rename`, or left out if the new name is empty.
  template <class Rename>
  void copy_renamed(const std::filesystem::path& directory, const Rename& rename) const {
    const data::SafetensorsFile file(FileReader(), exported_ / "model.safetensors");
    std::vector<data::TensorShape> shapes;
    std::vector<float> values;
    for (const data::TensorInfo& tensor : file.tensors()) {
      const std::string name = rename(tensor.name);
      if (name.empty()) continue;
      shapes.push_back({name, tensor.shape, tensor.type == "I64"});
      if (tensor.type == "I64") {
        for (const std::int64_t count : file.read_integer(tensor.name)) values.push_back(static_cast<float>(count));
        continue;
      }
      const std::vector<float> part = file.read_float(tensor.name);
      values.insert(values.end(), part.begin(), part.end());
    }
    tests::write_small_classifier(directory);
    data::SafetensorsWriter writer(directory / "model.safetensors", shapes);
    writer.write(values);
    writer.commit();
  }

  tests::TemporaryDirectory directory_;
  std::filesystem::path model_ = directory_ / "model", exported_ = directory_ / "exported",
                        other_ = directory_ / "other";
  std::unique_ptr<families::ImageModel> images_;
  std::unique_ptr<nn::Model> network_;
  TensorValues values_;
  std::string notices_;
};

TEST_F(ImageDirectory, FilesHavePyTorchsOrder) {
  const data::SafetensorsFile file(FileReader(), exported_ / "model.safetensors");
  const std::string name = "resnet.encoder.stages.1.layers.0.layer.0.convolution.weight";
  ASSERT_NE(file.find(name), nullptr);
  EXPECT_EQ(file.find(name)->shape, (std::vector<std::size_t>{16, 8, 3, 3}));
  const std::vector<float> written = file.read_float(name), &kept = values_.at(name);
  for (const auto& [o, i, y, x] : {std::array<std::size_t, 4>{0, 0, 0, 0}, {3, 5, 1, 2}, {15, 7, 2, 2}, {9, 0, 2, 0}}) {
    EXPECT_EQ(written[((o * 8 + i) * 3 + y) * 3 + x], kept[((o * 3 + y) * 3 + x) * 8 + i]);
  }
  const data::TensorInfo* count = file.find("resnet.embedder.embedder.normalization.num_batches_tracked");
  ASSERT_NE(count, nullptr);
  EXPECT_EQ(count->type, "I64");
  EXPECT_TRUE(count->shape.empty());
}

TEST_F(ImageDirectory, WhatIsWrittenIsReadAgain) {
  EXPECT_EQ(read(exported_), values_);
  EXPECT_EQ(notices_, "");
  for (const std::size_t piece : {1u, 72u, 1000u}) {
    write(other_, piece);
    EXPECT_EQ(read(other_), values_) << "in pieces of " << piece;
  }
  const ClassifierModel model = read_classifier(FileReader(), exported_);
  EXPECT_EQ(model.images->config_json("float32"), images_->config_json("float32"));
  ASSERT_TRUE(model.processor);
  EXPECT_EQ(model.processor->mean, input.mean);
  EXPECT_EQ(model.processor->size, input.size);
}

/// Returns torchvision's name of a tensor of this model.
std::string torchvision_name(const std::string& name) {
  for (const char* other : {"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var",
                            "bn1.num_batches_tracked", "fc.weight", "fc.bias"}) {
    if (families::canonical_resnet_name(other) == name) return other;
  }
  for (const std::string block : {"layer1.0.", "layer2.0."}) {
    for (const std::string part : {"conv1.", "conv2.", "bn1.", "bn2.", "downsample.0.", "downsample.1."}) {
      for (const char* kind : {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}) {
        if (families::canonical_resnet_name(block + part + kind) == name) return block + part + kind;
      }
    }
  }
  return {};
}

TEST_F(ImageDirectory, TorchvisionsNamesAreReadToo) {
  std::size_t renamed = 0;
  copy_renamed(other_, [&](const std::string& name) {
    const std::string other = torchvision_name(name);
    EXPECT_NE(other, "") << name;
    EXPECT_NE(other, name);
    ++renamed;
    return other;
  });
  EXPECT_EQ(renamed, values_.size());
  EXPECT_EQ(read(other_), values_);
}

TEST_F(ImageDirectory, OldFilesWithoutCountsBeginAtZero) {
  copy_renamed(other_, [](const std::string& name) { return families::is_batch_count(name) ? "" : name; });
  const TensorValues values = read(other_, false);
  EXPECT_EQ(values.size(), values_.size());
  EXPECT_EQ(values.at("resnet.embedder.embedder.normalization.num_batches_tracked"), std::vector{0.0f});
}

TEST_F(ImageDirectory, AMissingClassifierBeginsAnewInTrainingAlone) {
  copy_renamed(other_, [](const std::string& name) {
    return families::is_resnet_classifier(name) ? "" : name.substr(std::string("resnet.").size());
  });
  EXPECT_EQ(read(other_).size(), values_.size() - 2);
  EXPECT_THAT(notices_, HasSubstr("has no last layer (classifier.1): it is initialised with --seed"));
  EXPECT_THAT(error_of([&] { read(other_, false); }), HasSubstr("lack 2 of"));
}

TEST_F(ImageDirectory, ANewClassifierIgnoresTheOldOne) {
  EXPECT_EQ(read(exported_, true, true).size(), values_.size() - 2);
  EXPECT_THAT(notices_, EndsWith("its last layer has other labels, and is initialised anew with --seed"));
}

TEST_F(ImageDirectory, ANameThatIsKnownNeedsNoDirectory) {
  const ClassifierModel model = read_classifier(FileReader(), "resnet50");
  EXPECT_FALSE(model.has_weights(FileReader()));
  EXPECT_EQ(model.images->text(), "16 bottlenecks, 3 channels, imagenet stem, 1,000 labels");
  EXPECT_THAT(error_of([] { read_classifier(FileReader(), "resnet51"); }), HasSubstr("resnet51/config.json"));
}

TEST_F(ImageDirectory, ANameTakesTheWeightsOfADirectoryWithoutConfiguration) {
  images_ = read_classifier(FileReader(), "resnet18").images;
  images_->labels = data::unnamed_labels(7);
  images_->stem = families::ImageStem::cifar;
  const ImageInput pictures{.size = 32, .channels = 3, .mean = {0, 0, 0}, .deviation = {1, 1, 1}, .crop_fraction = 1.0};
  network_ = network_of(*images_, pictures);
  values_ = numbered_values(table());
  write(other_, 1'000'000);
  std::filesystem::remove(other_ / "config.json");
  const ClassifierModel model = read_classifier(FileReader(), "resnet18", other_);
  EXPECT_TRUE(model.has_weights(FileReader()));
  EXPECT_EQ(model.images->config_json("float32"), images_->config_json("float32")) << "labels and stem of the weights";
  TensorValues values;
  const train::TensorWriter writer([&](const std::string& name, const train::ValueReader& take) {
    values[name].resize(values_.at(name).size());
    take(0, values[name]);
  });
  read_classifier_weights(FileReader(), model, table(), true, writer, [](const std::string&) {});
  EXPECT_EQ(values, values_);
  EXPECT_THAT(error_of([&] { read_classifier(FileReader(), exported_, other_); }),
              HasSubstr(" is a directory, which holds its own weights; leave it out, or give the model by name"));
  EXPECT_THAT(error_of([&] { read_classifier(FileReader(), "resnet18", directory_ / "w.pth"); }),
              HasSubstr("w.pth: a Python pickle; convert it once, in its directory, which is then --weights: python3"));
  EXPECT_THAT(error_of([&] { read_classifier(FileReader(), "resnet18", directory_ / "absent"); }),
              HasSubstr("absent: there is no such directory"));
}

TEST_F(ImageDirectory, TheStemOfWeightsStays) {
  ClassifierModel bare = read_classifier(FileReader(), model_), whole = read_classifier(FileReader(), exported_);
  choose_stem(FileReader(), bare, families::ImageStem::cifar);
  EXPECT_EQ(bare.images->stem, families::ImageStem::cifar);
  choose_stem(FileReader(), whole, std::nullopt);
  choose_stem(FileReader(), whole, families::ImageStem::imagenet);
  EXPECT_THAT(error_of([&] { choose_stem(FileReader(), whole, families::ImageStem::cifar); }),
              HasSubstr("have the stem imagenet; leave it out"));
}

}  // namespace
}  // namespace mylos::tasks
