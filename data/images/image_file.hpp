#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/images/image_set.hpp"

/// The file of `mylos prepare` for images: encoded pictures as they are, with their labels, names and checksums, in one
/// HDF5 file. A million small files are what parallel file systems fear.
namespace mylos::data {

/// The attributes "format" and "format_version" of such a file.
inline constexpr const char* image_file_format = "mylos images";
inline constexpr std::int64_t image_file_version = 1;

/// An image as it is written.
struct PreparedImage {
  std::size_t index = 0;    ///< in the data set it comes from
  std::uint64_t bytes = 0;  ///< of ImageSet::encoded
  std::uint32_t checksum = 0;
};

/// Writes the images of `set` that `images` lists, in that order; `left_out` is recorded beside them. The file appears
/// whole or not at all; memory holds one image at a time. Throws std::runtime_error naming the file, also where an
/// image is no longer what its checksum says.
void write_image_file(const std::filesystem::path& path, const ImageSet& set, const std::vector<PreparedImage>& images,
                      std::uint64_t left_out);

/// Opens a prepared file. Labels, names and places are read and checked at once, pictures when they are asked for.
/// Throws std::runtime_error naming the file and what is wrong with it.
std::unique_ptr<ImageSet> open_image_file(const std::filesystem::path& path);

/// Whether `path` says that write_image_file wrote it, whole or damaged; false in a build without HDF5.
bool is_image_file(const std::filesystem::path& path);

}  // namespace mylos::data
