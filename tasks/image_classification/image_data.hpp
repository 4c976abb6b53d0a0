#pragma once

#include "core/base/notice.hpp"
#include "core/batch.hpp"
#include "data/images/image_loader.hpp"
#include "data/images/image_set.hpp"
#include "tasks/image_classification/image_input.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Reads a run's data set as batches for its model.
namespace mylos::tasks {

/// Decodes the images of batches: ahead of time if the order of requests is known, else on request.
class ImageReader {
 public:
  /// `set` must outlive the reader.
  ImageReader(const data::ImageSet& set, const data::LoaderOptions& options) : set_(set), options_(options) {}

  /// Starts decoding the images of `order`, and abandons an earlier order.
  void read_ahead(data::ImageLoader::Order order);
  /// Returns these images, augmented for `step`, valid until the next call. Errors: std::runtime_error naming a damaged
  /// image.
  const data::ImageBatch& read(std::uint64_t step, const std::vector<std::uint64_t>& images);

 private:
  const data::ImageSet& set_;
  data::LoaderOptions options_;
  std::unique_ptr<data::ImageLoader> loader_;  ///< null: no order is known
};

/// Opens a data set. `labels` is the number of labels of synthetic images; `limit` keeps only the first images. Errors:
/// std::runtime_error.
std::unique_ptr<data::ImageSet> open_image_data(const FileReader& files, const std::filesystem::path& data,
                                                data::ImagePart part, std::size_t labels,
                                                std::optional<std::size_t> limit);

/// Sends a line about the files of class directories that were passed over, if there are any.
void note_passed_over(const data::ImageSet& set, const std::filesystem::path& data, const Notice& notice);

/// Returns a checksum that is equal if the same images are trained on or evaluated. It covers their labels and names;
/// for images without names, the labels and the pixels of a sample of the images. PictureNotes covers every byte.
std::uint32_t checksum_of(const data::ImageSet& set);

/// Returns a description: "60,000 images of 10 labels".
std::string describe_images(const data::ImageSet& set);

class ImageBatches {
 public:
  /// `set` must outlive the batches. labels[i] is the model's label for label i of the data.
  ImageBatches(const data::ImageSet& set, std::vector<std::int32_t> labels, const ImageInput& input,
               const data::LoaderOptions& options);

  ImageReader& reader() { return reader_; }
  std::int32_t label(std::size_t image) const { return labels_[static_cast<std::size_t>(set_.label(image))]; }
  /// Makes the batch of these images; sample i consists of lengths[i] of them.
  void assemble(std::uint64_t step, const std::vector<std::uint64_t>& images, std::span<const std::size_t> lengths,
                std::span<const std::uint32_t> ids, Batch& batch);

 private:
  const data::ImageSet& set_;
  std::vector<std::int32_t> labels_;
  std::size_t channels_;  ///< channels that the model reads
  ImageReader reader_;
  std::vector<std::int32_t> batch_labels_;
};

}  // namespace mylos::tasks
