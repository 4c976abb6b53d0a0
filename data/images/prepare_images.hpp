#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/images/image_set.hpp"

namespace mylos::data {

struct PrepareOptions {
  bool strict = false;  ///< stop at the first damaged image instead of leaving it out
  std::size_t threads = 1;
};

struct PrepareCounts {
  std::uint64_t images = 0;                 ///< written
  std::uint64_t left_out = 0;               ///< damaged
  std::string first_left_out;               ///< location and reason of the first one left out; empty if there is none
  std::vector<std::string> emptied_labels;  ///< those whose images are all damaged
};

/// Decodes every image of `set` and writes the readable ones, unchanged, to one HDF5 file. Throws std::runtime_error
/// with the file if it cannot be written, if an image is damaged and `strict` is set, or if no image is readable.
PrepareCounts prepare_images(const ImageSet& set, const std::filesystem::path& path, const PrepareOptions& options);

}  // namespace mylos::data
