#pragma once

#include "data/images/image_loader.hpp"
#include "data/images/image_set.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace mylos::tasks {

/// Decodes the images of batches: ahead, where it was told which ones will be asked for, else when they are.
class ImageReader {
 public:
  /// `set` must outlive the reader.
  ImageReader(const data::ImageSet& set, const data::LoaderOptions& options) : set_(set), options_(options) {}

  /// Begins to decode what `order` gives; what was begun before is given up.
  void read_ahead(data::ImageLoader::Order order);
  /// These images, augmented as in `step`; valid until the next call. Errors: std::runtime_error naming a damaged one.
  const data::ImageBatch& read(std::uint64_t step, const std::vector<std::uint64_t>& images);

 private:
  const data::ImageSet& set_;
  data::LoaderOptions options_;
  std::unique_ptr<data::ImageLoader> loader_;  ///< null: nothing is expected
};

}  // namespace mylos::tasks
