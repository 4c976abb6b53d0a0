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

/// Images that are wanted together, in this order.
struct ImageRequest {
  std::uint64_t step = 0;  ///< what their augmentation is drawn from
  std::vector<std::uint64_t> images;
};

/// Images that a loader has made ready.
struct ImageBatch {
  std::uint64_t step = 0;
  std::vector<std::uint64_t> images;
  std::vector<std::uint8_t> pixels;  ///< (images, size, size, channels)
  std::vector<std::int32_t> labels;
};

struct LoaderOptions {
  TransformOptions transform;
  std::uint64_t seed = 0;
  std::size_t threads = 2;
  std::size_t ahead = 2;  ///< batches that are made before they are asked for; each takes memory
};

/// Bytes of the batches that a loader holds, of at most `images` of `image_bytes` each.
inline std::size_t loader_bytes(std::size_t images, std::size_t image_bytes,
                                std::size_t ahead = LoaderOptions().ahead) {
  return (ahead + 1) * images * image_bytes;
}

/// Decodes and augments ahead of its caller, in threads of its own. The batches do not depend on their number.
class ImageLoader {
 public:
  /// Gives request number 0, 1, 2, ...; empty at the end. Called in order by one thread at a time, not always the same.
  using Order = std::function<std::optional<ImageRequest>(std::uint64_t number)>;

  /// `set` must outlive the loader.
  ImageLoader(const ImageSet& set, LoaderOptions options, Order order);
  /// Ends the threads; waits for the image that each is at.
  ~ImageLoader();
  ImageLoader(const ImageLoader&) = delete;
  ImageLoader& operator=(const ImageLoader&) = delete;

  /// Waits for the next batch, which is valid until the next call; null at the end of the order. Throws what went wrong
  /// with it (the earliest image where several are damaged) and with every later call again.
  const ImageBatch* next();
  /// Seconds that the last call of next() waited, and all calls together.
  double seconds_waited() const { return last_wait_; }
  double total_seconds_waited() const { return total_wait_; }

 private:
  /// A batch in the ring.
  struct Slot {
    ImageBatch batch;
    std::size_t begun = 0;     ///< images that a thread has taken
    std::size_t finished = 0;  ///< of these, done or failed
    bool is_end = false;       ///< the order ends here
    std::exception_ptr error;
    std::size_t error_index = 0;
  };

  void work();
  /// Takes the next image to do, waiting for room in the ring; false where there is none any more.
  bool take(std::unique_lock<std::mutex>& lock, Slot*& slot, std::size_t& index);
  /// Fills the slot of request `requested_`, as its next batch.
  void request();
  bool is_ready(const Slot& slot) const { return slot.is_end || slot.finished == slot.batch.images.size(); }
  Slot& slot_of(std::uint64_t number) { return ring_[number % ring_.size()]; }

  const ImageSet& set_;
  LoaderOptions options_;
  Order order_;
  std::mutex mutex_;
  std::condition_variable room_;   ///< for threads: a slot is free, or it is over
  std::condition_variable ready_;  ///< for the caller: an image is done
  std::vector<Slot> ring_;
  std::uint64_t requested_ = 0;  ///< requests that were put into the ring
  std::uint64_t working_ = 0;    ///< the request whose images are being taken
  std::uint64_t released_ = 0;   ///< requests whose slots are free again
  std::uint64_t given_ = 0;      ///< batches that next() has given
  bool is_over_ = false;         ///< the order has ended, an error was met, or the loader is being destroyed
  std::exception_ptr failure_;
  double last_wait_ = 0.0;
  double total_wait_ = 0.0;
  std::vector<std::thread> threads_;
};

}  // namespace mylos::data
