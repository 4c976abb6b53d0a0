#include "tests/small_models/image_task.hpp"

#include "core/random.hpp"
#include "nn/head.hpp"

#include <algorithm>

namespace mylos::small_models {
namespace {

/// Streams of random numbers.
enum Stream : std::uint64_t { class_stream, offset_stream, noise_stream };

constexpr std::size_t side = 8;
constexpr float noise = 0.3f;

/// True if pixel (y, x) is on the line of this class.
bool on_line(std::int32_t kind, std::size_t offset, std::size_t y, std::size_t x) {
  if (kind == 0) return y == offset;
  if (kind == 1) return x == offset;
  return (y + offset) % side == (kind == 2 ? x : side - 1 - x);
}

}  // namespace

families::ResnetShape tiny_resnet() {
  families::ResnetShape shape;
  shape.channels = 1;
  shape.embedding = 4;
  shape.hidden = {4, 8};
  shape.depths = {1, 1};
  shape.bottleneck = false;
  shape.stem = families::ImageStem::cifar;
  shape.height = shape.width = side;
  shape.mean = {0.5f};
  shape.deviation = {0.25f};
  return shape;
}

ImageTask::ImageTask(const ImageTaskConfig& config)
    : GeneratedTask(families::make_resnet(tiny_resnet(), {.labels = line_classes}, Precision::float32),
                    {.training = config.groups,
                     .batch = config.groups_per_batch,
                     .evaluated = config.evaluation_groups,
                     .seed = config.seed,
                     .start = config.start}),
      config_(config) {}

train::WorkKind ImageTask::work() const {
  return {.name = "images", .singular = "image", .samples = "groups", .sample = "group"};
}

std::vector<std::size_t> ImageTask::images_of(std::span<const std::size_t> samples) const {
  std::vector<std::size_t> images;
  for (const std::size_t group : samples) {
    const std::vector<std::size_t> more = numbers_from(group * config_.images_per_group, config_.images_per_group);
    images.insert(images.end(), more.begin(), more.end());
  }
  return images;
}

std::int32_t ImageTask::class_of(std::size_t image) const {
  return static_cast<std::int32_t>(uniform_below(line_classes, config_.seed, class_stream, image));
}

void ImageTask::draw(std::size_t image, std::span<float> pixels) const {
  const std::size_t offset = uniform_below(side, config_.seed, offset_stream, image);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const float line = on_line(class_of(image), offset, i / side, i % side) ? 1.0f : 0.0f;
    pixels[i] = line + noise * static_cast<float>(normal(config_.seed, noise_stream, image * pixels.size() + i));
  }
}

void ImageTask::fill(std::span<const std::size_t> samples, Batch& batch) const {
  const std::vector<std::size_t> images = images_of(samples);
  std::vector<float> pixels(images.size() * side * side);
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < images.size(); ++i) {
    draw(images[i], std::span(pixels).subspan(i * side * side, side * side));
    labels.push_back(class_of(images[i]));
  }
  batch.set(nn::names::pixel_values, std::span<const float>(pixels));
  batch.set(nn::names::labels, std::span<const std::int32_t>(labels));
}

double ImageTask::correct(std::span<const std::size_t> samples, std::span<const float> logits) const {
  double count = 0.0;
  for (std::size_t i = 0; const std::size_t image : images_of(samples)) {
    const auto row = logits.subspan(line_classes * i++, line_classes);
    if (std::ranges::max_element(row) - row.begin() == class_of(image)) count += 1.0;
  }
  return count;
}

void spoil_pixels(Batch& batch, float value) {
  const std::vector<float> pixels(batch.shape().rows * side * side, value);
  batch.set(nn::names::pixel_values, std::span<const float>(pixels));
}

}  // namespace mylos::small_models
