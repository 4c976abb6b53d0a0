#include "tasks/image_classification/image_task.hpp"

#include "nn/head.hpp"
#include "tasks/task_kinds.hpp"
#include "tests/data/images/recorded_images.hpp"
#include "tests/data/images/small_images.hpp"
#include "tests/support/paths.hpp"
#include "tests/tasks/image_classification/small_classifier.hpp"
#include "train/engine/loop/evaluator.hpp"
#include "train/engine/samples/step_assignment.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

namespace mylos::tasks {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::error_of;

class ImageTaskTest : public testing::Test {
 protected:
  void SetUp() override {
    tests::write_small_digits(digits_, 41, 15);
    tests::write_small_classifier(model_);
    run_ = default_run(*find_task_kind("image-classification"), "train");
    run_.task.model = model_;
    run_.task.train = run_.task.dev = digits_;
    run_.task.batch = 10;
    image_config(run_).batch_norm_group = 4;
  }
  std::unique_ptr<ImageTask> make() {
    notices_.clear();
    return std::make_unique<ImageTask>(FileReader(), run_,
                                       [this](const std::string& line) { notices_ += line + "\n"; });
  }
  std::string refusal() {
    return error_of([this] { make(); });
  }

  tests::TemporaryDirectory directory_;
  std::filesystem::path digits_ = directory_ / "digits", model_ = directory_ / "model",
                        pictures_ = directory_ / "pictures";
  RunConfig run_;
  std::string notices_;
};

/// Expects a batch of these images, identified by their first pixel, with their labels.
void expect_images(const Batch& batch, const std::vector<std::size_t>& images) {
  ASSERT_EQ(batch.shape().rows, images.size());
  for (std::size_t i = 0; i < images.size(); ++i) {
    const std::string expected = tests::small_digit(images[i], 12);
    for (const std::size_t pixel : {0, 17, 143}) {
      EXPECT_EQ(batch.bytes(nn::names::pixels)(144 * i + pixel), static_cast<std::uint8_t>(expected[pixel]));
    }
    EXPECT_EQ(batch.integers(nn::names::labels)(i), static_cast<std::int32_t>(images[i] % 10));
  }
}

TEST_F(ImageTaskTest, AMicroBatchThatIsRoundedToGroupsIsNoted) {
  image_config(run_).batch_norm_group = 2;
  for (const auto& [micro_batch, here] : {std::pair(3, 2), std::pair(7, 6)}) {
    run_.engine.micro_batch = static_cast<std::size_t>(micro_batch);
    make();
    EXPECT_EQ(notices_, fmt::format("--micro-batch {}: a micro-batch is a whole number of groups of 2 images "
                                    "(--batch-norm-group), here {} images\n",
                                    micro_batch, here));
  }
  for (const std::size_t micro_batch : {0, 2, 8, 10, 11}) {
    run_.engine.micro_batch = micro_batch;
    make();
    EXPECT_THAT(notices_, Not(HasSubstr("--micro-batch"))) << micro_batch;
  }
}

TEST_F(ImageTaskTest, BatchesHoldTheGroupsThatAreAskedFor) {
  const auto task = make();
  EXPECT_EQ(task->steps_per_epoch(), 4u) << "the 41st image joins the step before";
  EXPECT_EQ(task->work().name, "images");
  for (std::size_t step = 0; step < 6; ++step) {
    const std::vector<std::size_t> samples = task->global_batch(step);
    const std::vector<std::uint32_t> ids(samples.size(), 0);
    Batch batch;
    task->assemble(step, samples, ids, batch);
    EXPECT_EQ(batch.shape().samples, samples.size());
    expect_images(batch, task->stream()->images(step));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      EXPECT_EQ(batch.host_sample_starts()[i + 1] - batch.host_sample_starts()[i], task->rows_of(samples[i]));
    }
  }
}

/// Returns the batches that one of two ranks reads in steps [first, steps), in micro-batches of one group.
train::ExpectedBatches expected_of(const ImageTask& task, std::size_t first, std::size_t steps) {
  return {.first_step = first, .steps = steps, .batches_of = [&task](std::size_t step) {
            const std::vector<std::size_t> samples = task.global_batch(step);
            std::vector<std::vector<std::size_t>> batches;
            for (std::size_t i = 1; i < samples.size(); i += 2) batches.push_back({samples[i]});
            batches.push_back({samples.front()});  // a dummy micro-batch
            return batches;
          }};
}

TEST_F(ImageTaskTest, ImagesReadAheadAreTheSame) {
  image_config(run_).augment = data::Augmentation::crop_flip;
  const auto ahead = make(), plain = make();
  const train::ExpectedBatches expected = expected_of(*ahead, 2, 7);
  ahead->read_ahead(expected);
  for (std::size_t step = 2; step < 9; ++step) {  // the last two are not expected
    for (const std::vector<std::size_t>& samples : expected.batches_of(step)) {
      const std::vector<std::uint32_t> ids(samples.size(), 0);
      Batch one, other;
      ahead->assemble(step, samples, ids, one);
      plain->assemble(step, samples, ids, other);
      const auto a = one.bytes(nn::names::pixels), b = other.bytes(nn::names::pixels);
      ASSERT_EQ(a.size(), b.size());
      EXPECT_TRUE(std::equal(a.data(), a.data() + a.size(), b.data()));
      EXPECT_EQ(one.integers(nn::names::labels)(0), other.integers(nn::names::labels)(0));
    }
  }
}

TEST_F(ImageTaskTest, AnOrderFileReplacesShuffling) {
  tests::write_file(directory_ / "order.jsonl", "[3, 1, 4, 1, 5]\n[9, 2, 6]\n");
  image_config(run_).order = directory_ / "order.jsonl";
  const auto task = make();
  EXPECT_EQ(task->steps_per_epoch(), 2u);
  Batch batch;
  const std::vector<std::size_t> samples = task->global_batch(2);
  EXPECT_EQ(samples.size(), 1u) << "five images are a group of 4 and one that joins it";
  task->assemble(2, samples, std::vector<std::uint32_t>{0}, batch);
  expect_images(batch, {3, 1, 4, 1, 5});
  EXPECT_EQ(task->data_checksums().back().option, "order");
  tests::write_file(directory_ / "order.jsonl", "[3, 41]\n");
  EXPECT_THAT(refusal(), HasSubstr("order.jsonl: line 1: the training data has no image 41"));
}

TEST_F(ImageTaskTest, WhatWasChosenIsRecorded) {
  const auto task = make();
  const nlohmann::ordered_json resolved = task->resolved();
  EXPECT_EQ(resolved["image-size"], 12);
  EXPECT_EQ(resolved["batch-norm-group"], 4);
  EXPECT_EQ(resolved["mean"].dump(), "[0.1307]");
  EXPECT_EQ(resolved["stem"], "imagenet");
  EXPECT_EQ(task->model_text(), "2 basic blocks, 1 channel, imagenet stem, 10 labels");
  EXPECT_EQ(task->train_text(), "41 images of 10 labels, 12 x 12 pixels, BatchNorm over groups of 4");
  EXPECT_EQ(task->dev_text(), "15 images of 10 labels");
  EXPECT_EQ(task->evaluated().count, 15u);
}

TEST_F(ImageTaskTest, ChecksumsFollowTheImages) {
  const auto sum = [&] { return make()->data_checksums().front().checksum; };
  const std::uint32_t before = sum();
  EXPECT_EQ(sum(), before);
  run_.task.train_limit = 40;
  EXPECT_NE(sum(), before);
}

TEST_F(ImageTaskTest, AKnownModelTakesLabelsAndChannelsFromTheData) {
  run_.task.model = "resnet18";
  const auto task = make();
  EXPECT_EQ(task->classifier().images->channels, 1u);
  EXPECT_EQ(task->classifier().images->labels.size(), 10u);
  image_config(run_).labels = 12;
  EXPECT_EQ(make()->classifier().images->labels.at(11), "LABEL_11");
  image_config(run_).labels = 9;
  EXPECT_THAT(refusal(), HasSubstr("--labels 9"));
}

TEST_F(ImageTaskTest, AModelWithoutWeightsOrNamesTakesTheLabelsOfTheData) {
  nlohmann::json config = tests::small_classifier_config(10);
  config.erase("id2label");
  tests::write_file(model_ / "config.json", config.dump());
  const auto labels = make()->classifier().images->labels;
  ASSERT_EQ(labels.size(), 10u);
  EXPECT_EQ(labels[7], "7");
  EXPECT_EQ(notices_.find("by number"), std::string::npos);
}

TEST_F(ImageTaskTest, LabelsThatAreTakenByNumberAreTold) {
  nlohmann::json config = tests::small_classifier_config(10);
  for (std::size_t i = 0; i < 10; ++i) config["id2label"][std::to_string(i)] = "shape " + std::to_string(i);
  tests::write_file(model_ / "config.json", config.dump());
  EXPECT_EQ(make()->classifier().images->labels[7], "shape 7");
  EXPECT_THAT(notices_, HasSubstr("digits: its labels are matched by number: 0 as shape 0, the first of "));
  image_config(run_).labels = 10;
  EXPECT_EQ(make()->classifier().images->labels[7], "7") << "asked for, its last layer begins anew";
}

TEST_F(ImageTaskTest, NamesOfLabelsAreUtf8) {
  for (const char* label : {"a", "\xff"}) {
    tests::write_file(pictures_ / "train" / label / "1.png", "");
  }
  run_.task.train = run_.task.dev = pictures_ / "train";
  EXPECT_THAT(refusal(), HasSubstr(": not UTF-8 at byte 0"));
}

TEST_F(ImageTaskTest, BatchNormOverOneValueIsRefused) {
  tests::write_small_digits(digits_, 41, 15, 7);
  EXPECT_NO_THROW(make());
  image_config(run_).batch_norm_group = 1;
  EXPECT_THAT(refusal(), HasSubstr("step 1: BatchNorm over one image whose last features are 1 x 1 learns nothing"));
}

TEST_F(ImageTaskTest, ImagesTakeTheChannelsOfTheModel) {
  tests::write_small_classifier(model_, 10, 3);
  const auto task = make();
  Batch batch;
  task->evaluation()->assemble(0, batch);
  const auto pixels = batch.bytes(nn::names::pixels);
  ASSERT_EQ(pixels.size(), 15u * 144 * 3);
  const std::string expected = tests::small_digit(3, 12);
  for (std::size_t i = 0; i < 144; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_EQ(pixels(3 * 144 * 3 + 3 * i + c), static_cast<std::uint8_t>(expected[i]));
    }
  }
}

TEST_F(ImageTaskTest, OtherLabelsBeginANewLastLayerOnlyWhereThatIsAskedFor) {
  tests::write_small_classifier(model_, 7);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("digits has 10 labels (0, 1, 2, ...)"), HasSubstr("was made for 7 labels"),
                               HasSubstr("; train with --labels 10 to initialise its last layer anew")));
  image_config(run_).labels = 10;
  EXPECT_TRUE(make()->classifier().new_classifier);
  run_.task.train.clear();
  EXPECT_THAT(refusal(), HasSubstr("was made for 7 labels; leave it out"));
}

TEST_F(ImageTaskTest, WithoutWeightsOnlyTrainingBegins) {
  const train::TensorWriter nothing([](const std::string&, const train::ValueReader&) { FAIL(); });
  const auto training = make();
  training->initial_values(FileReader(), nothing);
  EXPECT_THAT(notices_, HasSubstr("has no weights: the model is initialised with --seed"));
  run_.task.train.clear();
  const auto evaluating = make();
  EXPECT_THAT(error_of([&] { evaluating->initial_values(FileReader(), nothing); }),
              HasSubstr("has no weights; train it first"));
}

TEST_F(ImageTaskTest, TheStemOfSmallImagesIsSaidToBeOurs) {
  image_config(run_).stem = families::ImageStem::cifar;
  make();
  EXPECT_THAT(notices_, HasSubstr("transformers does not have this stem"));
  tests::write_small_digits(digits_, 41, 15, 5);
  EXPECT_NO_THROW(make());
  image_config(run_).stem.reset();
  EXPECT_THAT(refusal(), HasSubstr("smaller than the imagenet stem's first convolution"));
}

TEST_F(ImageTaskTest, ADamagedPictureIsNamed) {
  for (const char* file : {"a/1.png", "b/1.png"}) {
    tests::write_file(pictures_ / file, tests::recorded_image_file("decoded.jsonl", "png RGB"));
  }
  tests::write_file(pictures_ / "b/2.png", "no picture");
  run_.task.model = "resnet18";
  run_.task.train = pictures_;
  run_.task.dev.clear();
  image_config(run_).image_size = 16;
  const auto task = make();
  EXPECT_EQ(task->classifier().images->labels, (std::vector<std::string>{"a", "b"}));
  Batch batch;
  EXPECT_THAT(
      error_of([&] { task->assemble(0, task->global_batch(0), std::vector<std::uint32_t>{0}, batch); }),
      HasSubstr("b/2.png: is neither JPEG nor PNG; `mylos prepare` leaves damaged pictures out, and `damaged skip`"));
}

/// Loads PyTorch's model after its 400 steps.
TEST_F(ImageTaskTest, TheRecordedModelScoresAsInPyTorch) {
  const std::filesystem::path digits = tests::shared_reference() / "resnet" / "digits";
  const std::filesystem::path mnist = tests::shared_data() / "mnist";
  if (!std::filesystem::exists(digits) || !std::filesystem::exists(mnist)) GTEST_SKIP() << "no recorded digits";
  tests::write_file(model_ / "config.json", tests::read_file(digits / "config.json"));
  const data::SafetensorsFile state(FileReader(), digits / "state-400.safetensors");
  std::vector<data::TensorShape> shapes;
  std::vector<float> values;
  for (const data::TensorInfo& tensor : state.tensors()) {
    if (tensor.name.starts_with("momentum.")) continue;
    const bool is_count = tensor.type == "I64";
    shapes.push_back({tensor.name, tensor.shape, is_count});
    const std::vector<float> part = is_count ? std::vector{400.0f} : state.read_float(tensor.name);
    values.insert(values.end(), part.begin(), part.end());
  }
  data::SafetensorsWriter writer(model_ / "model.safetensors", shapes);
  writer.write(values);
  writer.commit();
  run_.task.train.clear();
  run_.task.dev = mnist;
  const auto task = make();
  train::Evaluator evaluator(*task, Precision::float32, {.provider = default_gemm_provider()});
  const train::Metrics metrics = evaluator.evaluate();
  EXPECT_NEAR(*train::find_metric(metrics, "accuracy"), 0.9845, 0.0006) << "a tie of rounding";
  EXPECT_NEAR(*train::find_metric(metrics, "validation_loss"), 0.0452, 0.0001);
}

}  // namespace
}  // namespace mylos::tasks
