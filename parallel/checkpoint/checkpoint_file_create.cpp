// Creates a checkpoint's file. HDF5 lays it out in a memory file, in which only written parts take memory. These parts
// are then copied to the file on disk. Disk errors are therefore reported by our own code: HDF5 1.10 crashes at exit
// after a disk error.
#include "core/base/error.hpp"
#include "core/base/files/hdf5.hpp"
#include "core/base/uninterrupted.hpp"
#include "core/base/value_bytes.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "parallel/checkpoint/checkpoint_format.hpp"
#include "parallel/checkpoint/frozen_file.hpp"

#include <fmt/format.h>
#include <hdf5.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mylos::parallel {
namespace {

constexpr hsize_t aligned_bytes = 4096;                 // alignment of arrays of at least this size
constexpr std::uint64_t metadata_bytes = 64 << 10;      // maximum for a file, without its datasets and record
constexpr std::uint64_t dataset_metadata_bytes = 8192;  // maximum for a dataset and its table, with alignment
constexpr std::size_t copied_bytes = 1 << 20;           // per read

/// A file in memory. Parts that were never written take no memory.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("mylos-checkpoint", MFD_CLOEXEC)) {
    if (descriptor_ < 0) fail(fmt::format("cannot make a file in memory: {}", std::strerror(errno)));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }
  std::uint64_t size() const { return static_cast<std::uint64_t>(::lseek(descriptor_, 0, SEEK_END)); }

  /// Copies all written parts to the same offsets in `target`.
  void copy_to(const PositionedFile& target) const {
    std::vector<std::byte> bytes(copied_bytes);
    off_t begin = 0;
    while ((begin = ::lseek(descriptor_, begin, SEEK_DATA)) >= 0) {
      const off_t end = ::lseek(descriptor_, begin, SEEK_HOLE);
      while (begin < end) {
        const auto size = std::min<std::size_t>(bytes.size(), end - begin);
        const auto count = uninterrupted([&] { return ::pread(descriptor_, bytes.data(), size, begin); });
        if (count <= 0) fail(fmt::format("cannot read a file in memory: {}", std::strerror(errno)));
        target.write(static_cast<std::uint64_t>(begin), std::span(bytes).first(static_cast<std::size_t>(count)));
        begin += count;
      }
    }
    if (errno != ENXIO) fail(fmt::format("cannot read a file in memory: {}", std::strerror(errno)));
  }

 private:
  int descriptor_;
};

hid_t create_layout_file(const std::string& memory, const std::string& name) {
  const Hdf5Id properties(hdf5_access_properties(), H5Pclose);
  H5Pset_fapl_stdio(properties.get());  // other drivers resolve the path, but a file in memory has none
  H5Pset_alignment(properties.get(), aligned_bytes, aligned_bytes);
  const hid_t file = H5Fcreate(memory.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, properties.get());
  if (file < 0) fail_hdf5(name, "lay", "it out");
  return file;
}

/// Creates a group that keeps the creation order of its members.
hid_t create_group(hid_t file, const std::string& path, const std::string& name) {
  const Hdf5Id properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_link_creation_order(properties.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  const hid_t group = H5Gcreate2(file, path.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT);
  if (group < 0) fail_hdf5(name, "make group", path);
  return group;
}

/// Creates the missing groups above `path`.
void create_groups_above(hid_t file, const std::string& path, const std::string& name) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string group = path.substr(0, slash);
    if (H5Lexists(file, group.c_str(), H5P_DEFAULT) <= 0) {
      const Hdf5Id made(create_group(file, group, name), H5Gclose);
    }
  }
}

/// Creates a contiguous, uninitialised dataset. Returns its offset in the file.
std::uint64_t create_dataset(hid_t file, const std::string& path, hid_t type, std::span<const hsize_t> shape,
                             const std::string& name) {
  create_groups_above(file, path, name);
  const Hdf5Id space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose);
  const Hdf5Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_layout(properties.get(), H5D_CONTIGUOUS);
  H5Pset_alloc_time(properties.get(), H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
  const Hdf5Id dataset(H5Dcreate2(file, path.c_str(), type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
                       H5Dclose);
  const haddr_t offset = dataset.is_valid() ? H5Dget_offset(dataset.get()) : HADDR_UNDEF;
  if (offset == HADDR_UNDEF) fail_hdf5(name, "make dataset", path);
  return offset;
}

/// Returns the HDF5 type of the rows written by pack_checksum_row.
hid_t checksum_row_type() {
  const hid_t type = H5Tcreate(H5T_COMPOUND, checksum_row_bytes);
  H5Tinsert(type, "first", 0, H5T_STD_U64LE);
  H5Tinsert(type, "count", 8, H5T_STD_U64LE);
  H5Tinsert(type, "crc32c", 16, H5T_STD_U32LE);
  return type;
}

std::vector<DatasetSlot> lay_out(hid_t file, std::span<const DatasetShape> datasets, const CheckpointRecord& record,
                                 const std::string& name) {
  write_hdf5_attribute(file, format_attribute, checkpoint_format, name);
  write_hdf5_attribute(file, version_attribute, names_frozen(record) ? checkpoint_format_version : std::uint64_t{1},
                       name);
  write_hdf5_attribute(file, record_checksum_attribute, record.checksum(), name);
  const Hdf5Id run(create_group(file, record_group, name), H5Gclose);
  for (const auto& member : record.members()) {
    const auto write = [&](const auto& value) { write_hdf5_attribute(run.get(), member.first.c_str(), value, name); };
    std::visit(write, member.second);
  }
  const Hdf5Id row_type(checksum_row_type(), H5Tclose);
  std::vector<DatasetSlot> slots;
  for (const DatasetShape& dataset : datasets) {
    const std::vector<hsize_t> shape(dataset.shape.begin(), dataset.shape.end());
    const hsize_t ranges = dataset.ranges;
    slots.push_back({create_dataset(file, dataset.name, H5T_IEEE_F32LE, shape, name),
                     create_dataset(file, checksums_group + dataset.name, row_type.get(), {&ranges, 1}, name)});
  }
  return slots;
}

/// Returns an upper bound of the file's size in bytes.
std::uint64_t largest_size(std::span<const DatasetShape> datasets, const CheckpointRecord& record) {
  std::uint64_t bytes = metadata_bytes + 2 * bytes_of_value(record).size() + record.members().size() * 512;
  for (const DatasetShape& dataset : datasets) {
    bytes += dataset.size() * sizeof(float) + dataset.ranges * checksum_row_bytes + dataset_metadata_bytes +
             4 * dataset.name.size();
  }
  return bytes;
}

}  // namespace

std::vector<DatasetSlot> create_checkpoint_file(const std::filesystem::path& path,
                                                std::span<const DatasetShape> datasets,
                                                const CheckpointRecord& record) {
  const std::string name = path.string();
  PositionedFile file(path, PositionedFile::Use::create);
  file.reserve(largest_size(datasets, record));
  const MemoryFile memory;
  Hdf5Id layout(create_layout_file(memory.path(), name), H5Fclose);
  const std::vector<DatasetSlot> slots = lay_out(layout.get(), datasets, record, name);
  if (!layout.reset()) fail_hdf5(name, "lay", "it out to the end");
  file.reserve(memory.size());
  file.resize(memory.size());
  memory.copy_to(file);
  file.sync_and_close();
  return slots;
}

}  // namespace mylos::parallel
