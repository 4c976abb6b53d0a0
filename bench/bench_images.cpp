#include "bench/bench_program.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/stopwatch.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/kernels/pixels.hpp"
#include "data/images/image_loader.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

/// bench_images --data DIR [--size N] [--rounds N] [--passes N] [--write FILE] [--json]: measures the images per second
/// that one thread reads, decodes, augments like `--augment imagenet`, and normalizes to float. --write writes the
/// pixels of the images as seen by an evaluation, one byte per channel, and times nothing.
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

/// Checks that a loader's batch of the first images equals transform_image of each. Errors: std::runtime_error.
void check_images(const ImageSet& set, const TransformOptions& transform) {
  data::ImageRequest request;
  request.images.resize(std::min(images_of_batch, set.size()));
  std::iota(request.images.begin(), request.images.end(), 0);
  data::ImageLoader loader(set, {.transform = transform},
                           [&](std::uint64_t number) { return number == 0 ? std::optional(request) : std::nullopt; });
  const data::ImageBatch& batch = *loader.next();
  const std::size_t bytes = batch.pixels.size() / batch.images.size();
  for (std::size_t i = 0; i < batch.images.size(); ++i) {
    const std::vector<std::uint8_t> alone = transformed(set, transform, {0, 0, batch.images[i]});
    const auto in_batch = batch.pixels.begin() + static_cast<std::ptrdiff_t>(i * bytes);
    ensure(alone.size() == bytes && std::equal(alone.begin(), alone.end(), in_batch),
           fmt::format("{} differs in the loader", set.location(batch.images[i])));
  }
}

/// Returns the seconds of `passes` passes over the images, one image at a time, each pass with other random choices.
double seconds_of_passes(const ImageSet& set, const TransformOptions& transform, std::uint64_t passes) {
  const PixelNormalization normalization{
      .channels = 3, .mean = {0.485f, 0.456f, 0.406f}, .deviation = {0.229f, 0.224f, 0.225f}};
  const std::size_t pixels = transform.size * transform.size;
  const Vector<std::uint8_t> copied("mylos::bench::pixels", 3 * pixels);
  const Matrix<float> normalized("mylos::bench::images", pixels, 3);
  const ExecutionSpace space;
  const Stopwatch watch;
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    for (std::size_t image = 0; image < set.size(); ++image) {
      const std::vector<std::uint8_t> bytes = transformed(set, transform, {0, pass, image});
      Kokkos::deep_copy(
          space, copied,
          Kokkos::View<const std::uint8_t*, HostSpace, Kokkos::MemoryUnmanaged>(bytes.data(), bytes.size()));
      normalize_pixels<float>(space, normalization, copied, normalized);
      space.fence("mylos::bench::images");
    }
  }
  return watch.seconds();
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
  const auto set = data::open_images(FileReader(), options.text("data", ""), data::ImagePart::training);
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
