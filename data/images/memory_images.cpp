#include "data/images/memory_images.hpp"

#include <fmt/format.h>

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"

namespace mylos::data {

MemoryImages::MemoryImages(Content content) : pixels_(std::move(content.pixels)), files_(std::move(content.files)) {
  shape_ = content.shape;
  labels_ = std::move(content.labels);
  label_names_ = std::move(content.label_names);
  require(pixels_.empty() || pixels_.size() == size() * shape_->size(), "each image has pixels and a label");
  for (std::size_t i = 0; i < size(); ++i) {
    if (labels_[i] >= 0 && static_cast<std::size_t>(labels_[i]) < label_names_.size()) continue;
    fail(fmt::format("{}: label {} is outside 0 to {}", location(i), labels_[i], label_names_.size() - 1));
  }
}

std::string MemoryImages::location(std::size_t index) const {
  for (const File& file : files_) {
    if (index < file.images) return fmt::format("{}, image {}", file.path.string(), index);
    index -= file.images;
  }
  return fmt::format("image {}", index);
}

std::string MemoryImages::encoded(std::size_t index) const {
  require(index < size() && pixels_.size() == size() * shape_->size(), "an image of the set, whose pixels are there");
  return {pixels_.data() + index * shape_->size(), shape_->size()};
}

std::optional<std::uint32_t> MemoryImages::checksum(std::size_t index) const {
  return crc32c(std::as_bytes(pixels_.span().subspan(index * shape_->size(), shape_->size())));
}

std::vector<std::string> numbered_labels(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("{}", i));
  return names;
}

}  // namespace mylos::data
