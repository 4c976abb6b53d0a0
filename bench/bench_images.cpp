#include "bench/bench_program.hpp"
#include "core/base/error.hpp"
#include "core/base/files.hpp"
#include "core/base/standard_output.hpp"
#include "core/kernels/pixels.hpp"
#include "data/images/image_loader.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

/// bench_images --data DIR [--size N] [--rounds N] [--passes N] [--write FILE] [--json]: images a second that one
/// thread reads, decodes, augments as `--augment imagenet` does and normalises to float. --write writes the pixels of
/// the images as an evaluation sees them, one byte a channel, and times nothing.
namespace mylos::bench {
namespace {

using data::AugmentationKey;
using data::ImageSet;
using data::TransformOptions;

constexpr std::size_t images_of_batch = 32;

std::vector<std::uint8_t> transformed(const ImageSet& set, const TransformOptions& options,
                                      const AugmentationKey& key) {
  std::vector<std::uint8_t> pixels(options.size * options.size * data::channels_of(set));
  data::transform_image(set, options, key, pixels);
  return pixels;
}

/// `passes` passes over the images in batches, each with other random choices, by one thread of a loader.
class Passes {
 public:
  Passes(const ImageSet& set, const TransformOptions& transform, std::uint64_t passes)
      : batches_((set.size() + images_of_batch - 1) / images_of_batch * passes),
        loader_(set, {.transform = transform, .threads = 1},
                [this, size = set.size()](std::uint64_t number) { return request(size, number); }) {}
  const data::ImageBatch* next() { return loader_.next(); }

 private:
  std::optional<data::ImageRequest> request(std::size_t size, std::uint64_t number) const {
    if (number == batches_) return std::nullopt;
    const std::uint64_t each = (size + images_of_batch - 1) / images_of_batch;
    data::ImageRequest request{.step = number / each, .images = {}};
    const std::size_t first = number % each * images_of_batch;
    request.images.resize(std::min(images_of_batch, size - first));
    std::iota(request.images.begin(), request.images.end(), first);
    return request;
  }

  std::uint64_t batches_;
  data::ImageLoader loader_;
};

/// Every image of a pass is what transform_image makes of it. Errors: std::runtime_error.
void check_images(const ImageSet& set, const TransformOptions& transform) {
  Passes passes(set, transform, 1);
  while (const data::ImageBatch* batch = passes.next()) {
    const std::size_t bytes = batch->pixels.size() / batch->images.size();
    for (std::size_t i = 0; i < batch->images.size(); ++i) {
      const std::vector<std::uint8_t> alone = transformed(set, transform, {0, batch->step, batch->images[i]});
      const auto in_batch = batch->pixels.begin() + static_cast<std::ptrdiff_t>(i * bytes);
      ensure(alone.size() == bytes && std::equal(alone.begin(), alone.end(), in_batch),
             fmt::format("{} differs in the loader", set.place(batch->images[i])));
    }
  }
}

/// Seconds of `passes` passes, with each batch normalised as soon as it is there.
double seconds_of_passes(const ImageSet& set, const TransformOptions& transform, std::uint64_t passes) {
  using Clock = std::chrono::steady_clock;
  const PixelNormalization normalization{
      .channels = 3, .mean = {0.485f, 0.456f, 0.406f}, .deviation = {0.229f, 0.224f, 0.225f}};
  const std::size_t pixels = transform.size * transform.size;
  const Matrix<float> normalized("mylos::bench::images", images_of_batch * pixels, 3);
  const ExecutionSpace space;
  const Clock::time_point begin = Clock::now();
  Passes all(set, transform, passes);
  while (const data::ImageBatch* batch = all.next()) {
    const std::size_t rows = batch->images.size() * pixels;
    normalize_pixels<float>(space, normalization, ConstVector<std::uint8_t>(batch->pixels.data(), batch->pixels.size()),
                            Matrix<float>(normalized.data(), rows, 3));
    space.fence("mylos::bench::images");
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void write_evaluation(const ImageSet& set, const TransformOptions& transform, const std::filesystem::path& file) {
  std::string pixels;
  for (std::size_t image = 0; image < set.size(); ++image) {
    const std::vector<std::uint8_t> made = transformed(set, transform, {0, 0, image});
    pixels.append(made.begin(), made.end());
  }
  write_text(file, pixels);
}

void run(int argc, char** argv) {
  const Options options(argc, argv, {"data", "size", "rounds", "passes", "write"});
  const auto set = data::open_images(options.text("data", ""), data::ImagePart::training);
  ensure(data::channels_of(*set) == 3, "--data: images of three channels are expected");
  TransformOptions transform{.size = options.count("size", 224)};
  if (options.has("write")) return write_evaluation(*set, transform, options.text("write", ""));
  transform.augmentation = data::Augmentation::imagenet;
  Kokkos::InitializationSettings settings;
  settings.set_num_threads(1);
  settings.set_disable_warnings(true);
  const Kokkos::ScopeGuard kokkos(settings);
  check_images(*set, transform);
  const std::size_t rounds = options.count("rounds", 5), passes = options.count("passes", 3);
  nlohmann::ordered_json seconds = nlohmann::ordered_json::array();
  for (std::size_t round = 0; round < rounds; ++round) seconds.push_back(seconds_of_passes(*set, transform, passes));
  const auto images = static_cast<double>(passes * set->size());
  if (options.json()) {
    return print(nlohmann::ordered_json{{"images", passes * set->size()}, {"seconds", seconds}}.dump(2) + "\n");
  }
  for (const auto& each : seconds) print(fmt::format("{:.1f} images/s\n", images / each.get<double>()));
}

}  // namespace
}  // namespace mylos::bench

int main(int argc, char** argv) {
  return mylos::bench::run_program("bench_images", [&] { mylos::bench::run(argc, argv); });
}
