#include "data/images/image_loader.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/process/threads.hpp"

namespace mylos::data {

ImageLoader::ImageLoader(const ImageSet& set, const LoaderOptions& options, Order order)
    : set_(set), options_(options), order_(std::move(order)), ring_(options.ahead + 1) {
  require(options.threads > 0 && options.ahead > 0, "a loader has threads and batches ahead");
  try {
    for (std::size_t i = 0; i < options.threads; ++i) threads_.push_back(start_thread([this] { work(); }));
  } catch (...) {  // the process limit was reached: stop the threads that have started
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
}

ImageLoader::~ImageLoader() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

const ImageBatch* ImageLoader::next() {
  std::unique_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (released_ < given_) {  // release the batch of the last call
    ++released_;
    room_.notify_all();
  }
  ready_.wait(lock, [&] { return requested_ > given_ && is_ready(slot_of(given_)); });
  const Slot& slot = slot_of(given_);
  if (slot.error) {
    failure_ = slot.error;
    std::rethrow_exception(failure_);
  }
  if (slot.is_end) return nullptr;
  ++given_;
  return &slot.batch;
}

void ImageLoader::work() {
  Slot* slot = nullptr;
  std::size_t index = 0;
  std::unique_lock lock(mutex_);
  while (take(lock, slot, index)) {
    ImageBatch& batch = slot->batch;
    std::exception_ptr error;
    lock.unlock();
    try {
      load(batch, index);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && (!slot->error || index < slot->error_index)) {
      slot->error = error;
      slot->error_index = index;
    }
    ++slot->finished;
    if (is_ready(*slot)) ready_.notify_all();
  }
}

/// Fills the pixels and the label of an image of the batch.
void ImageLoader::load(ImageBatch& batch, std::size_t index) const {
  const std::size_t bytes = options_.transform.size * options_.transform.size * channels_of(set_);
  const std::span<std::uint8_t> pixels = std::span(batch.pixels).subspan(index * bytes, bytes);
  std::optional<std::uint64_t> image = batch.images[index];
  for (std::size_t tries = 1; image; ++tries) {
    try {
      transform_image(set_, options_.transform, {options_.seed, batch.step, *image}, pixels);
      batch.labels[index] = set_.label(*image);
      return;
    } catch (const DamagedImage&) {
      if (!options_.substitute || tries == set_.size()) throw;
      image = options_.substitute(batch.step, batch.images[index], tries);
    }
  }
  std::ranges::fill(pixels, std::uint8_t{0});
  batch.labels[index] = set_.label(batch.images[index]);
}

bool ImageLoader::take(std::unique_lock<std::mutex>& lock, Slot*& slot, std::size_t& index) {
  while (!is_over_) {
    if (working_ < requested_) {
      slot = &slot_of(working_);
      if (slot->begun < slot->batch.images.size()) {
        index = slot->begun++;
        return true;
      }
      is_over_ = slot->is_end || slot->error != nullptr;
      if (!is_over_) ++working_;
    } else if (requested_ - released_ < ring_.size()) {
      request();
    } else {
      room_.wait(lock);
    }
  }
  return false;
}

void ImageLoader::request() {
  Slot& slot = slot_of(requested_);
  slot.begun = slot.finished = 0;
  slot.error = nullptr;
  slot.batch.images.clear();
  try {
    auto wanted = order_(requested_);
    slot.is_end = !wanted;
    if (wanted) {
      slot.batch.step = wanted->step;
      slot.batch.pixels.resize(wanted->images.size() * options_.transform.size * options_.transform.size *
                               channels_of(set_));
      slot.batch.labels.resize(wanted->images.size());
      slot.batch.images = std::move(wanted->images);
    }
  } catch (...) {
    slot.error = std::current_exception();
    slot.is_end = true;
  }
  ++requested_;
  room_.notify_all();  // there is work for the other threads
  if (is_ready(slot)) ready_.notify_all();
}

}  // namespace mylos::data
