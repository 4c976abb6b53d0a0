#include "tasks/image_classification/image_evaluation.hpp"

#include "core/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace mylos::tasks {
namespace {

/// Returns the images per batch: enough to occupy a machine, and for large images few enough for its memory. Scores do
/// not depend on it.
std::size_t batch_of(std::size_t side) {
  constexpr std::size_t pixels = 2'000'000, most = 256;
  return std::clamp<std::size_t>(pixels / (side * side), 1, most);
}

data::LoaderOptions loader_options(const ImageInput& input, std::size_t threads, bool skips_damaged) {
  data::LoaderOptions options{.transform = transform_options(input), .threads = threads, .substitute = {}};
  if (skips_damaged) options.substitute = [](auto, auto, auto) { return std::nullopt; };
  return options;
}

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

ImageEvaluation::ImageEvaluation(std::unique_ptr<data::ImageSet> set, std::vector<std::string> labels,
                                 const std::vector<std::int32_t>& matched, const ImageInput& input, std::size_t threads,
                                 bool skips_damaged)
    : set_(std::move(set)),
      labels_(std::move(labels)),
      side_(input.size),
      batch_(batch_of(input.size)),
      images_(*set_, matched, input, loader_options(input, threads, skips_damaged)) {}

std::size_t ImageEvaluation::batches() const { return (set_->size() + batch_ - 1) / batch_; }

BatchShape ImageEvaluation::largest_batch() const {
  const std::size_t images = std::min(batch_, set_->size());
  return {images, images, 1};
}

std::size_t ImageEvaluation::kept_bytes() const {
  return set_->size() * sizeof(Prediction) +
         data::loader_bytes(largest_batch().rows, side_ * side_ * data::channels_of(*set_));
}

std::vector<std::uint64_t> ImageEvaluation::images_of(std::size_t index) const {
  std::vector<std::uint64_t> images(std::min(batch_, set_->size() - index * batch_));
  std::iota(images.begin(), images.end(), std::uint64_t{index * batch_});
  return images;
}

void ImageEvaluation::read_ahead(std::size_t first, std::size_t stride) const {
  images_.reader().read_ahead([this, first, stride](std::uint64_t number) -> std::optional<data::ImageRequest> {
    if (number >= (batches() + stride - 1) / stride) return std::nullopt;
    return data::ImageRequest{0, images_of(std::min(first + number * stride, batches() - 1))};
  });
}

void ImageEvaluation::assemble(std::size_t index, Batch& batch) const {
  const std::vector<std::uint64_t> images = images_of(index);
  const std::vector<std::size_t> lengths(images.size(), 1);
  std::vector<std::uint32_t> ids(images.size());
  std::iota(ids.begin(), ids.end(), static_cast<std::uint32_t>(index * batch_));
  images_.assemble(0, images, lengths, ids, batch);
}

void ImageEvaluation::take(std::size_t index, std::span<const float> outputs, std::span<const float>) {
  constexpr std::ptrdiff_t five = 5;
  if (index == 0) predictions_.clear();
  std::size_t row = 0;
  for (const std::uint64_t image : images_of(index)) {
    const auto logits = outputs.subspan(row++ * labels_.size(), labels_.size());
    const std::int32_t label = images_.label(image);
    const float of_label = logits[static_cast<std::size_t>(label)];
    const auto likeliest = std::ranges::max_element(logits);
    const auto predicted = static_cast<std::int32_t>(likeliest - logits.begin());
    const double normalizer = log_sum_exp(logits);
    // Ranks the label last among equal logits, so that an untrained model is not rewarded.
    const auto before = std::ranges::count_if(logits, [&](float logit) { return logit >= of_label; }) - 1;
    predictions_.push_back({.image = image,
                            .label = label,
                            .predicted = predicted,
                            .probability = static_cast<float>(std::exp(static_cast<double>(*likeliest) - normalizer)),
                            .is_among_five = before < five,
                            .loss = normalizer - static_cast<double>(of_label)});
  }
}

std::span<const train::MetricKind> ImageEvaluation::kinds() const {
  static const std::array<train::MetricKind, 3> kinds = {
      {{"validation_loss", "Validation loss", "", false}, {"accuracy", "Accuracy"}, {"top5", "Top-5 accuracy"}}};
  return kinds;
}

train::Metrics ImageEvaluation::score() {
  const data::ImageMarks* const marks = set_->marks();
  if (marks != nullptr) std::erase_if(predictions_, [&](const auto& each) { return (*marks)[each.image].is_damaged; });
  ensure(!predictions_.empty(), "all images of the evaluation are damaged");
  double loss_sum = 0.0;
  std::size_t right = 0, among_five = 0;
  for (const Prediction& each : predictions_) {
    loss_sum += each.loss;
    if (each.predicted == each.label) ++right;
    if (each.is_among_five) ++among_five;
  }
  const auto images = static_cast<double>(predictions_.size());
  const double loss = loss_sum / images, accuracy = static_cast<double>(right) / images,
               top5 = static_cast<double>(among_five) / images;
  nlohmann::ordered_json results = {
      {"loss", loss}, {"accuracy", accuracy}, {"top5", top5}, {"images", predictions_.size()}};
  if (predictions_.size() < set_->size()) results["damaged"] = set_->size() - predictions_.size();
  results_ = results.dump(2) + "\n";
  return {{"validation_loss", loss}, {"accuracy", accuracy}, {"top5", top5}};
}

std::string ImageEvaluation::prediction_lines() const {
  std::string lines;
  for (const Prediction& each : predictions_) {
    const std::string file = set_->name(each.image);
    nlohmann::ordered_json line;
    if (file.empty()) line["index"] = each.image;
    if (!file.empty()) line["file"] = file;
    line["label"] = labels_[static_cast<std::size_t>(each.label)];
    line["predicted"] = labels_[static_cast<std::size_t>(each.predicted)];
    line["probability"] = each.probability;
    // Names of files and directories might not be valid UTF-8.
    lines += line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  return lines;
}

ImageMistakes ImageEvaluation::mistakes() const {
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < predictions_.size(); ++i) {
    if (predictions_[i].predicted != predictions_[i].label) wrong.push_back(i);
  }
  ImageMistakes mistakes{.images = predictions_.size(), .wrong = wrong.size(), .worst = {}};
  const std::size_t kept = std::min(wrong.size(), ImageMistakes::most);
  // A NaN loss, from a diverged model, counts as the largest.
  const auto order = [&](std::size_t i) {
    const auto loss = static_cast<float>(predictions_[i].loss);
    return std::pair(std::isnan(loss) ? -std::numeric_limits<float>::infinity() : -loss, i);
  };
  std::ranges::partial_sort(wrong, wrong.begin() + static_cast<std::ptrdiff_t>(kept), {}, order);
  for (const std::size_t i : std::span(wrong).first(kept)) {
    const Prediction& each = predictions_[i];
    mistakes.worst.push_back({each.image, set_->name(each.image), labels_[static_cast<std::size_t>(each.label)],
                              labels_[static_cast<std::size_t>(each.predicted)], each.probability,
                              static_cast<float>(each.loss)});
  }
  return mistakes;
}

}  // namespace mylos::tasks
