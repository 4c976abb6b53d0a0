#include "core/base/text/printable.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/text/unicode.hpp"
#include "data/images/image_set.hpp"
#include "tasks/image_classification/image_classification_kind.hpp"
#include "tasks/image_classification/image_task.hpp"
#include "train/engine/loop/evaluator.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

/// mylos classify: the likeliest labels of images.
namespace mylos::tasks {
namespace {

constexpr std::size_t most_labels = 5;

struct LikelyLabel {
  std::string label;
  double probability = 0.0;
};

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
        labels_(task.classifier().images->labels),
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

/// Returns the most likely labels of each picture in descending order, five or as many as the model has.
std::vector<std::vector<LikelyLabel>> classify_images(const RunConfig& run, const std::vector<std::string>& files) {
  auto set = data::list_images({files.begin(), files.end()});
  ImageTask task(FileReader(), run, log_line);
  ListedPictures pictures(std::move(set), task);
  train::Evaluator(task, run.engine.precision, run.engine.gemm, pictures.largest_batch()).predict(pictures);
  return std::move(pictures.likely());
}

std::string likely_json(const std::string& file, const std::vector<LikelyLabel>& likely) {
  nlohmann::ordered_json labels = nlohmann::ordered_json::array();
  for (const auto& [label, probability] : likely) labels.push_back({{"label", label}, {"probability", probability}});
  return nlohmann::ordered_json({{"file", file}, {"labels", labels}}).dump() + "\n";
}

std::string likely_text(const std::string& file, const std::vector<LikelyLabel>& likely) {
  std::string text = printable(file) + "\n";
  for (const auto& [label, probability] : likely) {
    text += fmt::format("  {:6.2f} %  {}\n", 100.0 * probability, printable(label));
  }
  return text;
}

}  // namespace

void classify(const CommandCall& call) {
  for (const std::string& file : call.words) ensure_utf8(file, "the name of a picture");
  const auto likely = classify_images(call.start(), call.words);
  for (std::size_t i = 0; i < likely.size(); ++i) {
    const std::string& file = call.words[i];
    call.json ? print_json_text(likely_json(file, likely[i])) : print(likely_text(file, likely[i]));
  }
  flush_output();
}

}  // namespace mylos::tasks
