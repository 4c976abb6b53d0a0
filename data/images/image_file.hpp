#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/images/image_set.hpp"

/// The image file of `mylos prepare`: encoded images, unchanged, with labels, names and checksums in one HDF5 file.
/// Millions of small files are slow on parallel file systems.
namespace mylos::data {

/// The attributes "format" and "format_version" of an image file.
inline constexpr const char* image_file_format = "mylos images";
inline constexpr std::int64_t image_file_version = 1;

/// An image to be written.
struct PreparedImage {
  std::size_t index = 0;    ///< in the source data set
  std::uint64_t bytes = 0;  ///< size of ImageSet::encoded
  std::uint32_t checksum = 0;
};

/// Writes the images of `set` listed in `images`, in that order, and records `left_out` with them. The file appears
/// complete or not at all. Only one image is in memory at a time. Throws std::runtime_error with the file, also if an
/// image no longer matches its checksum.
void write_image_file(const std::filesystem::path& path, const ImageSet& set, const std::vector<PreparedImage>& images,
                      std::uint64_t left_out);

/// Opens a prepared file. Labels, names and locations are read and checked immediately, images on demand. Throws
/// std::runtime_error with the file and the problem.
std::unique_ptr<ImageSet> open_image_file(const FileReader& files, const std::filesystem::path& path);

/// True if `path` was written by write_image_file, complete or damaged.
bool is_image_file(const std::filesystem::path& path);

}  // namespace mylos::data
