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

/// True if pixel (y, x) is on the line of this class.
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

namespace {

/// Appends images [first, first + count).
void draw(const ImageTaskConfig& config, std::size_t first, std::size_t count, Images& images) {
  const ImageSize& size = config.shape.image;
  const std::size_t begin = images.pixels.size();
  images.pixels.resize(begin + count * size.pixels());
  for (std::size_t i = 0; i < count; ++i) {
    const auto target = std::span(images.pixels).subspan(begin + i * size.pixels(), size.pixels());
    images.classes.push_back(draw_image(size, config.seed, first + i, target));
  }
}

void fill(const Images& images, std::span<const std::size_t> lengths, std::span<const std::uint32_t> ids,
          Batch& batch) {
  batch.reset(lengths, ids);
  batch.set(images::pixels, std::span(images.pixels));
  batch.set(images::classes, std::span(images.classes));
}

class ImageEvaluation final : public GeneratedEvaluation {
 public:
  explicit ImageEvaluation(const ImageTaskConfig& config) : config_(config) {}

  std::size_t batches() const override { return (config_.evaluation_images + evaluation_batch - 1) / evaluation_batch; }
  BatchShape largest_batch() const override {
    const std::size_t pixels = config_.shape.image.pixels();
    return {std::min(evaluation_batch, config_.evaluation_images), evaluation_batch * pixels, pixels};
  }
  void assemble(std::size_t index, Batch& batch) const override {
    const Images images = images_of(index);
    std::vector<std::uint32_t> ids(images.classes.size());
    std::iota(ids.begin(), ids.end(), 0u);
    fill(images, std::vector<std::size_t>(ids.size(), config_.shape.image.pixels()), ids, batch);
  }

 protected:
  double correct(std::size_t index, std::span<const float> logits) const override {
    const std::size_t classes = config_.shape.classes;
    const Images images = images_of(index);
    double count = 0.0;
    for (std::size_t i = 0; i < images.classes.size(); ++i) {
      const auto row = logits.subspan(i * classes, classes);
      count += std::ranges::max_element(row) - row.begin() == images.classes[i] ? 1.0 : 0.0;
    }
    return count;
  }
  double weight() const override { return static_cast<double>(config_.evaluation_images); }

 private:
  Images images_of(std::size_t index) const {
    const std::size_t begin = index * evaluation_batch;
    Images images;
    draw(config_, config_.groups * config_.images_per_group + begin,
         std::min(evaluation_batch, config_.evaluation_images - begin), images);
    return images;
  }

  ImageTaskConfig config_;
};

}  // namespace

ImageTask::ImageTask(const ImageTaskConfig& config)
    : GeneratedTask(make_convolution_classifier(config.shape), config.groups, config.groups_per_batch, config.seed,
                    config.start),
      config_(config) {
  evaluation_ = std::make_unique<ImageEvaluation>(config);
}

/// A sample is a group of images.
train::WorkKind ImageTask::work() const {
  return {.name = "images",
          .singular = "image",
          .rows = config_.shape.image.pixels(),
          .samples = "groups",
          .sample = "group"};
}

void ImageTask::assemble(std::size_t, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                         Batch& batch) const {
  drawn_.pixels.clear();
  drawn_.classes.clear();
  for (const std::size_t group : samples) {
    draw(config_, group * config_.images_per_group, config_.images_per_group, drawn_);
  }
  fill(drawn_, std::vector<std::size_t>(samples.size(), rows_of(0)), ids, batch);
}

}  // namespace mylos::small_models
