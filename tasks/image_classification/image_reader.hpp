#pragma once

#include "data/images/image_loader.hpp"
#include "data/images/image_set.hpp"

#include <cstdint>
#include <memory>
#include <vector>

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

}  // namespace mylos::tasks
