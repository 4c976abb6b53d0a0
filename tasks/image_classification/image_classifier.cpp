#include "tasks/image_classification/image_classifier.hpp"

#include "core/kernels/gemm_providers.hpp"
#include "data/images/listed_images.hpp"
#include "tasks/image_classification/image_task.hpp"
#include "train/engine/evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

namespace mylos::tasks {
namespace {

constexpr std::size_t most_labels = 5;

std::vector<LikelyLabel> likeliest(std::span<const float> logits, const std::vector<std::string>& labels) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t count = std::min(most_labels, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count),
                            [&](std::size_t one, std::size_t other) {
                              return logits[one] != logits[other] ? logits[one] > logits[other] : one < other;
                            });
  const double normalizer = log_sum_exp(logits);
  std::vector<LikelyLabel> likely;
  for (std::size_t i = 0; i < count; ++i) {
    likely.push_back({labels[order[i]], std::exp(static_cast<double>(logits[order[i]]) - normalizer)});
  }
  return likely;
}

/// Pictures without labels, predicted in batches.
class ListedPictures final : public train::Evaluation {
 public:
  ListedPictures(std::unique_ptr<data::ImageSet> set, const ImageTask& task)
      : set_(std::move(set)),
        labels_(task.classifier().config.labels),
        images_(*set_, {0}, task.input(), {.transform = transform_options(task.input())}) {}

  std::size_t batches() const override { return (set_->size() + batch - 1) / batch; }
  BatchShape largest_batch() const override {
    const std::size_t images = std::min(batch, set_->size());
    return {images, images, 1};
  }
  void assemble(std::size_t index, Batch& made) const override {
    std::vector<std::uint64_t> images(std::min(batch, set_->size() - index * batch));
    std::iota(images.begin(), images.end(), std::uint64_t{index * batch});
    images_.assemble(0, images, std::vector<std::size_t>(images.size(), 1),
                     std::vector<std::uint32_t>(images.begin(), images.end()), made);
  }
  void take(std::size_t, std::span<const float> outputs, std::span<const float>) override {
    for (std::size_t begin = 0; begin < outputs.size(); begin += labels_.size()) {
      likely_.push_back(likeliest(outputs.subspan(begin, labels_.size()), labels_));
    }
  }
  train::Metrics score() override { return {}; }
  std::span<const train::MetricKind> kinds() const override { return {}; }

  std::vector<std::vector<LikelyLabel>>& likely() { return likely_; }

 private:
  static constexpr std::size_t batch = 16;

  std::unique_ptr<data::ImageSet> set_;
  std::vector<std::string> labels_;
  mutable ImageBatches images_;
  std::vector<std::vector<LikelyLabel>> likely_;
};

}  // namespace

std::vector<std::vector<LikelyLabel>> classify_images(const RunConfig& run,
                                                      std::span<const std::filesystem::path> files,
                                                      const Notice& notice) {
  RunConfig alone = run;
  alone.task.train.clear();
  alone.task.dev.clear();
  // Timing the providers would take longer than classifying a picture.
  train::GemmConfig& gemm = alone.engine.gemm;
  if (gemm.provider == train::GemmConfig::automatic && !gemm.recorded) gemm.provider = default_gemm_provider();
  auto set = data::list_images({files.begin(), files.end()});
  ImageTask task(alone, notice);
  ListedPictures pictures(std::move(set), task);
  train::Evaluator(task, alone.engine.precision, gemm, pictures.largest_batch()).predict(pictures);
  return std::move(pictures.likely());
}

}  // namespace mylos::tasks
