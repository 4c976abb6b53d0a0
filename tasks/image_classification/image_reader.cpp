#include "tasks/image_classification/image_reader.hpp"

#include "core/base/error.hpp"

#include <optional>
#include <utility>

namespace mylos::tasks {

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
