#include "tasks/image_classification/image_evaluation.hpp"

#include "families/resnet/resnet_body.hpp"
#include "tests/data/images/small_images.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <sstream>

namespace mylos::tasks {
namespace {

using nlohmann::json;

/// 300 images of 10 labels in batches of 256, for a model whose labels are in reverse order.
class ImageEvaluationTest : public testing::Test {
 protected:
  static constexpr std::size_t images = 300;

  void SetUp() override {
    tests::write_small_digits(directory_.path(), 0, images);
    std::vector<std::string> labels;
    std::vector<std::int32_t> matched;
    for (int i = 0; i < 10; ++i) {
      labels.push_back("label " + std::to_string(i));
      matched.push_back(9 - i);
    }
    evaluation_ = std::make_unique<ImageEvaluation>(
        data::open_images(FileReader(), directory_.path().string(), data::ImagePart::test), labels, matched,
        ImageInput{.size = 12, .channels = 1, .mean = {0.5f}, .deviation = {0.5f}, .crop_fraction = 1.0}, 2);
  }
  /// Returns logits of the images of a batch, zero except for one label per image, `likely(image)`.
  template <class Likely>
  void take(const Likely& likely) {
    for (std::size_t index = 0, image = 0; index < evaluation_->batches(); ++index) {
      const std::size_t count = index == 0 ? 256 : images - 256;
      std::vector<float> logits(10 * count);
      for (std::size_t row = 0; row < count; ++row, ++image) logits[10 * row + likely(image)] = 3.0f;
      evaluation_->take(index, logits, {});
    }
  }

  tests::TemporaryDirectory directory_;
  std::unique_ptr<ImageEvaluation> evaluation_;
};

TEST_F(ImageEvaluationTest, BatchesAreOfSingleImagesWithTheModelsLabels) {
  ASSERT_EQ(evaluation_->batches(), 2u);
  EXPECT_EQ(evaluation_->largest_batch().samples, 256u);
  EXPECT_EQ(evaluation_->largest_batch().longest, 1u);
  for (const bool ahead : {false, true}) {
    if (ahead) evaluation_->read_ahead(1, 4);
    Batch batch;
    evaluation_->assemble(1, batch);
    EXPECT_EQ(batch.shape().samples, images - 256);
    EXPECT_EQ(batch.shape().rows, images - 256);
    EXPECT_EQ(batch.bytes(nn::names::pixels).size(), (images - 256) * 144);
    EXPECT_EQ(batch.integers(nn::names::labels)(0), 9 - 256 % 10);
    const std::string expected = tests::small_digit(256, 12);
    for (std::size_t i = 0; i < 144; ++i) {
      EXPECT_EQ(batch.bytes(nn::names::pixels)(i), static_cast<std::uint8_t>(expected[i]));
    }
  }
}

TEST_F(ImageEvaluationTest, ScoresArePlainMeans) {
  // Every third image is mistaken for its neighbour.
  take([](std::size_t image) { return (9 - image % 10 + (image % 3 == 0 ? 1 : 0)) % 10; });
  const train::Metrics metrics = evaluation_->score();
  const double normalizer = std::log(9.0 + std::exp(3.0));
  EXPECT_NEAR(*train::find_metric(metrics, "validation_loss"), normalizer - 3.0 * 200 / 300, 1e-12);
  EXPECT_DOUBLE_EQ(*train::find_metric(metrics, "accuracy"), 200.0 / 300);
  // The label is the last of nine equal logits, so the top five do not include it.
  EXPECT_DOUBLE_EQ(*train::find_metric(metrics, "top5"), 200.0 / 300);
  const json results = json::parse(evaluation_->results());
  EXPECT_EQ(results["images"], images);
  EXPECT_EQ(results["accuracy"], 200.0 / 300);
  take([](std::size_t image) { return 9 - image % 10; });
  EXPECT_DOUBLE_EQ(*train::find_metric(evaluation_->score(), "accuracy"), 1.0) << "a second evaluation begins anew";
}

TEST_F(ImageEvaluationTest, TheFifthLikeliestStillCounts) {
  const auto top5_with = [&](std::size_t larger) {
    for (std::size_t index = 0, image = 0; index < evaluation_->batches(); ++index) {
      const std::size_t count = index == 0 ? 256 : images - 256;
      std::vector<float> logits(10 * count);
      for (std::size_t row = 0; row < count; ++row, ++image) {
        const std::size_t label = 9 - image % 10;
        logits[10 * row + label] = 1.0f;
        for (std::size_t i = 1; i <= larger; ++i) logits[10 * row + (label + i) % 10] = 2.0f;
      }
      evaluation_->take(index, logits, {});
    }
    return *train::find_metric(evaluation_->score(), "top5");
  };
  EXPECT_EQ(top5_with(4), 1.0);
  EXPECT_EQ(top5_with(5), 0.0);
}

TEST_F(ImageEvaluationTest, EveryPredictionIsALine) {
  take([](std::size_t image) { return image == 1 ? 0 : 9 - image % 10; });
  std::istringstream lines(evaluation_->prediction_lines());
  std::vector<json> predictions;
  for (std::string line; std::getline(lines, line);) predictions.push_back(json::parse(line));
  ASSERT_EQ(predictions.size(), images);
  const float probability = static_cast<float>(std::exp(3.0) / (9.0 + std::exp(3.0)));
  EXPECT_EQ(predictions[1],
            (json{{"index", 1}, {"label", "label 8"}, {"predicted", "label 0"}, {"probability", probability}}));
}

TEST(LogSumExp, LosesNothingOfLargeLogits) {
  EXPECT_DOUBLE_EQ(log_sum_exp(std::vector{1000.0f, 1000.0f}), 1000.0 + std::log(2.0));
}

}  // namespace
}  // namespace mylos::tasks
