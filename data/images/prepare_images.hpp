#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/images/image_set.hpp"

namespace mylos::data {

struct PrepareOptions {
  bool strict = false;  ///< end at the first damaged picture instead of leaving it out
  std::size_t threads = 1;
};

struct PrepareCounts {
  std::uint64_t images = 0;    ///< written
  std::uint64_t left_out = 0;  ///< damaged
  std::string first_left_out;  ///< why the first of them was left out, with its place; empty where none was
};

/// Decodes every picture of `set` and writes those that can be read to one HDF5 file, their bytes as they are. Throws
/// std::runtime_error naming the file: it cannot be written, a picture is damaged and `strict`, or none can be read.
PrepareCounts prepare_images(const ImageSet& set, const std::filesystem::path& path, const PrepareOptions& options);

}  // namespace mylos::data
