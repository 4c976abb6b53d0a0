#include "data/images/prepare_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <system_error>
#include <thread>

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"
#include "data/images/decode.hpp"
#include "data/images/image_file.hpp"

namespace mylos::data {
namespace {

/// The result of checking an image: its size and checksum, or the reason for leaving it out.
struct CheckedImage {
  PreparedImage image;
  std::string problem;
};

CheckedImage check_image(const ImageSet& set, std::size_t index) {
  try {
    const std::string bytes = set.encoded(index);
    if (!set.shape()) decode_image(bytes);
    return {{index, bytes.size(), crc32c(std::as_bytes(std::span(bytes)))}, {}};
  } catch (const std::exception& error) {
    const std::string location = set.location(index), reason = error.what();
    return {{index, 0, 0},
            reason.find(location) == std::string::npos ? fmt::format("{}: {}", location, reason) : reason};
  }
}

std::vector<CheckedImage> check_images(const ImageSet& set, const PrepareOptions& options) {
  std::vector<CheckedImage> checked(set.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> is_over = false;
  const auto work = [&] {
    for (std::size_t i = next++; i < set.size() && !is_over; i = next++) {
      checked[i] = check_image(set, i);
      if (options.strict && !checked[i].problem.empty()) is_over = true;
    }
  };
  std::vector<std::jthread> threads;
  try {
    for (std::size_t i = 1; i < options.threads; ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {  // thread limit reached: continue with the existing threads
  }
  work();
  threads.clear();
  return checked;
}

/// Returns the labels that have images in `set`, but none in `images`.
std::vector<std::string> labels_without(const ImageSet& set, const std::vector<PreparedImage>& images) {
  std::vector<char> has_images(set.label_names().size()), had_images = has_images;
  for (const std::int32_t label : set.labels()) had_images[static_cast<std::size_t>(label)] = 1;
  for (const PreparedImage& image : images) has_images[static_cast<std::size_t>(set.label(image.index))] = 1;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < has_images.size(); ++i) {
    if (has_images[i] != had_images[i]) names.push_back(set.label_names()[i]);
  }
  return names;
}

}  // namespace

PrepareCounts prepare_images(const ImageSet& set, const std::filesystem::path& path, const PrepareOptions& options) {
  std::vector<PreparedImage> images;
  PrepareCounts counts;
  for (const CheckedImage& checked : check_images(set, options)) {
    if (checked.problem.empty()) {
      images.push_back(checked.image);
      continue;
    }
    if (options.strict) fail(fmt::format("{}; without {} it is left out", checked.problem, setting("strict")));
    if (counts.left_out++ == 0) counts.first_left_out = checked.problem;
  }
  counts.images = images.size();
  if (images.empty()) fail(fmt::format("no image can be read; the first: {}", counts.first_left_out));
  counts.emptied_labels = labels_without(set, images);
  write_image_file(path, set, images, counts.left_out);
  return counts;
}

}  // namespace mylos::data
