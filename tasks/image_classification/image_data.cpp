#include "tasks/image_classification/image_data.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/text/quantities.hpp"
#include "data/images/image_set.hpp"
#include "nn/head.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace mylos::tasks {

std::unique_ptr<data::ImageSet> open_image_data(const FileReader& files, const std::filesystem::path& data,
                                                data::ImagePart part, std::size_t labels,
                                                std::optional<std::size_t> limit) {
  data::ImageSetOptions options;
  if (labels > 0) options.synthetic_labels = labels;
  std::unique_ptr<data::ImageSet> set = data::open_images(files, data.string(), part, options);
  return limit ? data::first_images(std::move(set), *limit) : std::move(set);
}

void note_passed_over(const data::ImageSet& set, const std::filesystem::path& data, const Notice& notice) {
  const auto& [files, first] = set.passed_over();
  if (files == 0) return;
  notice(fmt::format("{}: {} passed over, not named .jpg, .jpeg or .png; the first: {}", data.string(),
                     count_of(files, "file"), first));
}

std::uint32_t checksum_of(const data::ImageSet& set) {
  constexpr std::size_t sampled = 64;
  std::string text;
  for (const std::string& label : set.label_names()) text += label + "\n";
  for (std::size_t i = 0; i < set.size(); ++i) text += fmt::format("{} {}\n", set.label(i), set.name(i));
  if (set.name(0).empty()) {
    const std::size_t stride = std::max<std::size_t>(1, set.size() / sampled);
    for (std::size_t i = 0; i < set.size(); i += stride) text += set.encoded(i);
  }
  return crc32c(std::as_bytes(std::span(text)));
}

std::string describe_images(const data::ImageSet& set) {
  return fmt::format("{} of {}", count_of(set.size(), "image"), count_of(set.label_names().size(), "label"));
}

ImageBatches::ImageBatches(const data::ImageSet& set, std::vector<std::int32_t> labels, const ImageInput& input,
                           const data::LoaderOptions& options)
    : set_(set), labels_(std::move(labels)), channels_(input.channels), reader_(set, options) {}

void ImageBatches::assemble(std::uint64_t step, const std::vector<std::uint64_t>& images,
                            std::span<const std::size_t> lengths, std::span<const std::uint32_t> ids, Batch& batch) {
  const data::ImageBatch& read = reader_.read(step, images);
  batch_labels_.clear();
  for (const std::int32_t label : read.labels) batch_labels_.push_back(labels_[static_cast<std::size_t>(label)]);
  batch.reset(lengths, ids);
  const std::size_t channels = data::channels_of(set_);
  if (channels == channels_) {
    batch.set(nn::names::pixels, std::span<const std::uint8_t>(read.pixels));
  } else {
    const std::vector<std::uint8_t> pixels = convert_channels(read.pixels, channels, channels_);
    batch.set(nn::names::pixels, std::span<const std::uint8_t>(pixels));
  }
  batch.set(nn::names::labels, std::span<const std::int32_t>(batch_labels_));
}

void ImageReader::read_ahead(data::ImageLoader::Order order) {
  loader_.reset();  // ends its threads before new ones start
  loader_ = std::make_unique<data::ImageLoader>(set_, options_, std::move(order));
}

const data::ImageBatch& ImageReader::read(std::uint64_t step, const std::vector<std::uint64_t>& images) {
  if (loader_) {
    const data::ImageBatch* batch = loader_->next();
    if (batch != nullptr && batch->step == step && batch->images == images) return *batch;
  }
  read_ahead([step, images](std::uint64_t number) {
    return number == 0 ? std::optional(data::ImageRequest{step, images}) : std::nullopt;
  });
  const data::ImageBatch* batch = loader_->next();
  require(batch != nullptr, "image reader: a batch that was asked for has not come");
  return *batch;
}

}  // namespace mylos::tasks
