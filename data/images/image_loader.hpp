#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/images/image_transform.hpp"

namespace mylos::data {

/// A request for a batch of images, in this order.
struct ImageRequest {
  std::uint64_t step = 0;  ///< determines the random augmentation, with the seed and the image
  std::vector<std::uint64_t> images;
};

/// A batch of decoded and augmented images.
struct ImageBatch {
  std::uint64_t step = 0;
  std::vector<std::uint64_t> images;
  std::vector<std::uint8_t> pixels;  ///< (images, size, size, channels)
  std::vector<std::int32_t> labels;
};

/// Returns the image to use in a step instead of `image` after `tries` images, this one included, were damaged;
/// nullopt: black pixels. Called by several threads.
using Substitute =
    std::function<std::optional<std::uint64_t>(std::uint64_t step, std::uint64_t image, std::size_t tries)>;

struct LoaderOptions {
  TransformOptions transform;
  std::uint64_t seed = 0;
  std::size_t threads = 2;
  std::size_t ahead = 2;       ///< batches prepared in advance; each takes memory
  Substitute substitute = {};  ///< for damaged images; null: they are errors
};

/// Returns the bytes of a loader's batches, each of at most `images` images of `image_bytes` bytes.
inline std::size_t loader_bytes(std::size_t images, std::size_t image_bytes,
                                std::size_t ahead = LoaderOptions().ahead) {
  return (ahead + 1) * images * image_bytes;
}

/// Decodes and augments images ahead of the caller, in its own threads. The batches do not depend on the thread count.
class ImageLoader {
 public:
  /// Returns request number 0, 1, 2, ..., or nullopt at the end. Called in order by one thread at a time, but not
  /// always the same thread.
  using Order = std::function<std::optional<ImageRequest>(std::uint64_t number)>;

  /// `set` must outlive the loader.
  ImageLoader(const ImageSet& set, const LoaderOptions& options, Order order);
  /// Stops the threads after each has finished its current image.
  ~ImageLoader();
  ImageLoader(const ImageLoader&) = delete;
  ImageLoader& operator=(const ImageLoader&) = delete;

  /// Waits for the next batch, which is valid until the next call. Returns null at the end of the order. Throws the
  /// error of that batch (of its earliest damaged image if there are several), and throws it again in all later calls.
  const ImageBatch* next();

 private:
  /// A batch in the ring buffer.
  struct Slot {
    ImageBatch batch;
    std::size_t begun = 0;     ///< images that a thread has started
    std::size_t finished = 0;  ///< started images that are done or have failed
    bool is_end = false;       ///< the order ends at this request
    std::exception_ptr error;
    std::size_t error_index = 0;
  };

  void work();
  void load(ImageBatch& batch, std::size_t index) const;
  /// Takes the next image, after waiting for space in the ring buffer. Returns false if there are no more images.
  bool take(std::unique_lock<std::mutex>& lock, Slot*& slot, std::size_t& index);
  /// Fills the slot of request number `requested_`.
  void request();
  bool is_ready(const Slot& slot) const { return slot.is_end || slot.finished == slot.batch.images.size(); }
  Slot& slot_of(std::uint64_t number) { return ring_[number % ring_.size()]; }

  const ImageSet& set_;
  LoaderOptions options_;
  Order order_;
  std::mutex mutex_;
  std::condition_variable room_;   ///< signals workers: a slot is free, or the work is over
  std::condition_variable ready_;  ///< signals the caller: an image is done
  std::vector<Slot> ring_;
  std::uint64_t requested_ = 0;  ///< number of requests put into the ring buffer
  std::uint64_t working_ = 0;    ///< the request from which images are being taken
  std::uint64_t released_ = 0;   ///< number of requests whose slots are free again
  std::uint64_t given_ = 0;      ///< number of batches returned by next()
  bool is_over_ = false;         ///< the order has ended, an error occurred, or the loader is being destroyed
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace mylos::data
