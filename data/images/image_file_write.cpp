// HDF5 writes the structure of the file, without the images, to a sparse file in memory. Then both are copied to disk
// in file order, so that disk errors are handled here: HDF5 1.10 crashes at exit after a disk error.
#include <fmt/format.h>
#include <hdf5.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/hdf5.hpp"
#include "core/base/uninterrupted.hpp"
#include "data/images/image_file.hpp"

namespace mylos::data {
namespace {

constexpr std::uint64_t copied_at_once = std::uint64_t{1} << 20;

class LayoutInMemory {
 public:
  explicit LayoutInMemory(const std::string& name)
      : name_(name), descriptor_(::memfd_create("mylos-images", MFD_CLOEXEC)) {
    if (descriptor_ < 0) fail(fmt::format("{}: cannot make a file in memory: {}", name, std::strerror(errno)));
  }
  ~LayoutInMemory() { ::close(descriptor_); }
  LayoutInMemory(const LayoutInMemory&) = delete;
  LayoutInMemory& operator=(const LayoutInMemory&) = delete;

  hid_t create() const {
    const Hdf5Id properties(hdf5_access_properties(), H5Pclose);
    H5Pset_fapl_stdio(properties.get());  // other drivers resolve the path, and a file in memory has none
    const auto path = fmt::format("/proc/self/fd/{}", descriptor_);
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, properties.get());
    if (file < 0) fail_hdf5(name_, "lay", "it out");
    return file;
  }

  std::uint64_t size() const { return static_cast<std::uint64_t>(::lseek(descriptor_, 0, SEEK_END)); }

  void copy_to(StagedFile& target, std::uint64_t begin, std::uint64_t end) const {
    std::string bytes;
    while (begin < end) {
      bytes.resize(std::min(end - begin, copied_at_once));
      const auto count =
          uninterrupted([&] { return ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(begin)); });
      if (count <= 0) fail(fmt::format("{}: cannot read a file in memory: {}", name_, std::strerror(errno)));
      target.write(std::string_view(bytes).substr(0, static_cast<std::size_t>(count)));
      begin += static_cast<std::uint64_t>(count);
    }
  }

 private:
  std::string name_;
  int descriptor_;
};

/// Writes an array with the checksum that Hdf5Reader expects.
template <class Element>
void write_array(hid_t file, const char* path, std::span<const Element> values, const std::string& name) {
  const hsize_t size = values.size();
  const Hdf5Id space(H5Screate_simple(1, &size, nullptr), H5Sclose);
  const auto type = hdf5_type<Element>();
  const Hdf5Id id(H5Dcreate2(file, path, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose);
  const bool is_written =
      id.is_valid() && (size == 0 || H5Dwrite(id.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  if (!is_written) fail_hdf5(name, "write", path);
  write_hdf5_attribute(id.get(), "crc32c", crc32c(std::as_bytes(values)), name);
}

/// Allocates a dataset of bytes without writing it. Returns its offset in the file.
std::uint64_t reserve_bytes(hid_t file, hsize_t size, const std::string& name) {
  const Hdf5Id space(H5Screate_simple(1, &size, nullptr), H5Sclose);
  const Hdf5Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_alloc_time(properties.get(), H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
  const auto type = hdf5_type<std::uint8_t>();
  const Hdf5Id id(H5Dcreate2(file, "/bytes", type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Dclose);
  const haddr_t offset = id.is_valid() ? H5Dget_offset(id.get()) : HADDR_UNDEF;
  if (offset == HADDR_UNDEF) fail_hdf5(name, "lay out", "/bytes");
  return offset;
}

void write_names(hid_t file, const char* path, const std::vector<std::string>& names, const std::string& name) {
  std::vector<std::uint8_t> bytes;
  for (const std::string& each : names) {
    bytes.insert(bytes.end(), each.begin(), each.end());
    bytes.push_back(0);
  }
  write_array<std::uint8_t>(file, path, bytes, name);
}

void write_tables(hid_t file, const ImageSet& set, const std::vector<PreparedImage>& images, std::uint64_t left_out,
                  const std::string& name) {
  const auto attribute = [&](const char* what, auto value) { write_hdf5_attribute(file, what, value, name); };
  attribute("format", std::string_view(image_file_format));
  attribute("format_version", image_file_version);
  attribute("left_out", static_cast<std::int64_t>(left_out));
  if (set.shape()) {
    attribute("height", static_cast<std::int64_t>(set.shape()->height));
    attribute("width", static_cast<std::int64_t>(set.shape()->width));
    attribute("channels", static_cast<std::int64_t>(set.shape()->channels));
  }
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> checksums;
  std::vector<std::uint64_t> starts{0};
  std::vector<std::string> names;
  for (const PreparedImage& image : images) {
    labels.push_back(set.label(image.index));
    checksums.push_back(image.checksum);
    starts.push_back(starts.back() + image.bytes);
    if (!set.shape()) names.push_back(set.name(image.index));
  }
  write_array<std::int32_t>(file, "/labels", labels, name);
  write_array<std::uint32_t>(file, "/checksums", checksums, name);
  write_array<std::uint64_t>(file, "/starts", starts, name);
  write_names(file, "/label_names", set.label_names(), name);
  write_names(file, "/names", names, name);
}

}  // namespace

void write_image_file(const std::filesystem::path& path, const ImageSet& set, const std::vector<PreparedImage>& images,
                      std::uint64_t left_out) {
  const std::string name = path.string();
  std::uint64_t bytes = 0;
  for (const PreparedImage& image : images) bytes += image.bytes;
  require(bytes > 0, "an image file has images");
  StagedFile target(path);  // first, to find out early whether it can be written
  const LayoutInMemory memory(name);
  Hdf5Id file(memory.create(), H5Fclose);
  write_tables(file.get(), set, images, left_out, name);
  const std::uint64_t offset = reserve_bytes(file.get(), bytes, name);
  if (!file.reset()) fail_hdf5(name, "lay", "it out to the end");
  memory.copy_to(target, 0, offset);
  for (const PreparedImage& image : images) {
    const std::string encoded = set.encoded(image.index);
    const bool is_same = encoded.size() == image.bytes && crc32c(std::as_bytes(std::span(encoded))) == image.checksum;
    ensure(is_same, fmt::format("{} has changed while it was prepared", set.location(image.index)));
    target.write(encoded);
  }
  memory.copy_to(target, offset + bytes, std::max(memory.size(), offset + bytes));
  target.commit();
}

}  // namespace mylos::data
