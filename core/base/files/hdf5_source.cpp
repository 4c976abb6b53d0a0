#include "core/base/files/hdf5_source.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5.h>

#include <algorithm>
#include <array>

namespace mylos {
namespace {

constexpr int most_dimensions = 8;

std::vector<std::size_t> shape_of(hid_t dataset, const std::string& what) {
  const Hdf5Id space(H5Dget_space(dataset), H5Sclose);
  const int rank = space.is_valid() ? H5Sget_simple_extent_ndims(space.get()) : -1;
  ensure(rank >= 0 && rank <= most_dimensions, fmt::format("{} has {} dimensions", what, rank));
  std::array<hsize_t, most_dimensions> sizes{};
  H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
  return {sizes.begin(), sizes.begin() + rank};
}

/// Returns the number of elements. Fails if they take more than `most_bytes`.
std::uint64_t size_of(const std::vector<std::size_t>& shape, std::size_t element_bytes, std::uint64_t most_bytes,
                      const std::string& what) {
  if (std::ranges::find(shape, std::size_t{0}) != shape.end()) return 0;
  std::uint64_t size = 1;
  for (const std::size_t extent : shape) {
    ensure(size <= most_bytes / element_bytes / extent,
           fmt::format("{} has shape ({}), but the file is too short for it", what, fmt::join(shape, ", ")));
    size *= extent;
  }
  return size;
}

/// Returns the offset of a contiguous dataset of `bytes` bytes in a file of `file_bytes`.
std::uint64_t offset_of(hid_t dataset, std::uint64_t bytes, std::uint64_t file_bytes, const std::string& what) {
  const Hdf5Id properties(H5Dget_create_plist(dataset), H5Pclose);
  const bool is_block = properties.is_valid() && H5Pget_layout(properties.get()) == H5D_CONTIGUOUS &&
                        H5Pget_external_count(properties.get()) == 0;
  ensure(is_block, fmt::format("{} is chunked, compact or in another file; only contiguous datasets are read", what));
  if (bytes == 0) return 0;  // an empty dataset has no storage
  const haddr_t offset = H5Dget_offset(dataset);
  ensure(offset != HADDR_UNDEF && H5Dget_storage_size(dataset) == bytes && offset <= file_bytes &&
             bytes <= file_bytes - offset,
         fmt::format("{} reaches beyond the file: it is truncated", what));
  return offset;
}

}  // namespace

Hdf5Source::Hdf5Source(const std::filesystem::path& path)
    : name_(path.string()),
      file_(open_hdf5_file(path), H5Fclose),
      bytes_(std::filesystem::file_size(path)),
      unclaimed_(bytes_) {}

std::int64_t Hdf5Source::open(const std::string& path) const {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    H5L_info_t link;
    if (H5Lget_info(id(), part.c_str(), &link, H5P_DEFAULT) < 0) fail_hdf5(name_, "read", path);
    ensure(link.type == H5L_TYPE_HARD,
           fmt::format("{}: {} is a soft or external link; only hard links are followed", name_, part));
  }
  const hid_t object = H5Oopen(id(), path.c_str(), H5P_DEFAULT);
  if (object < 0) fail_hdf5(name_, "read", path);
  return object;
}

Hdf5Array Hdf5Source::locate(std::int64_t dataset, std::size_t element_bytes, const std::string& path) {
  const std::string what = fmt::format("{}: {}", name_, path);
  Hdf5Array array{.shape = shape_of(dataset, what)};
  array.size = size_of(array.shape, element_bytes, bytes_, what);
  const std::uint64_t bytes = array.size * element_bytes;
  array.offset = offset_of(dataset, bytes, bytes_, what);
  ensure(bytes <= unclaimed_,
         fmt::format("{} and the arrays before it are longer than the file: some share their bytes", what));
  unclaimed_ -= bytes;
  return array;
}

}  // namespace mylos
