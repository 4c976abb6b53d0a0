#include "tests/small_models/image_task.hpp"

#include "core/random.hpp"

#include <algorithm>
#include <numeric>

namespace mylos::small_models {
namespace {

/// Streams of random numbers.
enum Stream : std::uint64_t { class_stream, offset_stream, noise_stream };

constexpr float noise = 0.3f;
constexpr std::size_t evaluation_batch = 50;

/// Whether pixel (y, x) is on the line of this class.
bool on_line(std::int32_t kind, const ImageSize& size, std::size_t offset, std::size_t y, std::size_t x) {
  switch (kind) {
    case 0:
      return y == offset;
    case 1:
      return x == offset;
    case 2:
      return (y + offset) % size.height == x;
    default:
      return (y + offset) % size.height == size.width - 1 - x;
  }
}

}  // namespace

std::int32_t draw_image(const ImageSize& size, std::uint64_t seed, std::size_t index, std::span<float> pixels) {
  const auto kind = static_cast<std::int32_t>(uniform_below(4, seed, class_stream, index));
  const std::size_t offset = uniform_below(size.height, seed, offset_stream, index);
  for (std::size_t i = 0; i < size.pixels(); ++i) {
    const float line = on_line(kind, size, offset, i / size.width, i % size.width) ? 1.0f : 0.0f;
    pixels[i] = line + noise * static_cast<float>(normal(seed, noise_stream, index * size.pixels() + i));
  }
  return kind;
}

ImageTask::ImageTask(const ImageTaskConfig& config)
    : GeneratedTask(make_convolution_classifier(config.shape), config.groups, config.groups_per_batch, config.seed,
                    config.start),
      config_(config) {}

void ImageTask::draw(std::size_t first_image, std::size_t images) const {
  const std::size_t pixels = config_.shape.image.pixels(), begin = pixels_.size();
  pixels_.resize(begin + images * pixels);
  for (std::size_t i = 0; i < images; ++i) {
    const auto target = std::span(pixels_).subspan(begin + i * pixels, pixels);
    classes_.push_back(draw_image(config_.shape.image, config_.seed, first_image + i, target));
  }
}

void ImageTask::fill(std::span<const std::size_t> lengths, std::span<const std::uint32_t> ids, Batch& batch) const {
  batch.reset(lengths, ids);
  batch.set(images::pixels, pixels_);
  batch.set(images::classes, classes_);
}

void ImageTask::assemble(std::span<const std::size_t> samples, std::span<const std::uint32_t> ids, Batch& batch) const {
  pixels_.clear();
  classes_.clear();
  for (const std::size_t group : samples) draw(group * config_.images_per_group, config_.images_per_group);
  fill(std::vector<std::size_t>(samples.size(), rows_of(0)), ids, batch);
}

BatchShape ImageTask::evaluation_shape() const {
  const std::size_t pixels = config_.shape.image.pixels();
  return {std::min(evaluation_batch, config_.evaluation_images), evaluation_batch * pixels, pixels};
}

train::Metrics ImageTask::evaluate(train::Predictor& predictor) {
  const std::size_t first = config_.groups * config_.images_per_group, classes = config_.shape.classes;
  double loss = 0.0, correct = 0.0;
  Batch batch;
  for (std::size_t begin = 0; begin < config_.evaluation_images; begin += evaluation_batch) {
    const std::size_t count = std::min(evaluation_batch, config_.evaluation_images - begin);
    std::vector<std::uint32_t> ids(count);
    std::iota(ids.begin(), ids.end(), 0u);
    pixels_.clear();
    classes_.clear();
    draw(first + begin, count);
    fill(std::vector<std::size_t>(count, config_.shape.image.pixels()), ids, batch);
    std::vector<float> losses(count);
    const std::span<const float> logits = predictor.predict(batch, losses);
    loss += std::accumulate(losses.begin(), losses.end(), 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      const auto row = logits.subspan(i * classes, classes);
      correct += std::ranges::max_element(row) - row.begin() == classes_[i] ? 1.0 : 0.0;
    }
  }
  const double images = static_cast<double>(config_.evaluation_images);
  last_metrics_ = {{"validation_loss", loss / images}, {"accuracy", correct / images}};
  return last_metrics_;
}

}  // namespace mylos::small_models
