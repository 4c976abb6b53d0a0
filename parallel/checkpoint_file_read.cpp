// Reads what a checkpoint's file says of itself, and checks that it is whole. Nothing that the file claims is believed
// before it was compared with the file's size.
#include "core/error.hpp"
#include "core/hdf5.hpp"
#include "parallel/checkpoint_file.hpp"
#include "parallel/checkpoint_format.hpp"

#include <fmt/format.h>
#include <hdf5.h>

#include <array>
#include <cstddef>
#include <functional>

namespace mylos::parallel {
namespace {

constexpr std::size_t longest_text = 16 << 20;  // bytes of an attribute
constexpr int deepest_group = 8;
constexpr std::size_t most_dimensions = 8;

/// A file that is read.
struct Source {
  std::string name;
  std::uint64_t bytes;  ///< its size
  hid_t file;
};

void check_format(const Source& source) {
  const bool is_checkpoint = H5Aexists(source.file, format_attribute) > 0 &&
                             read_hdf5_text(source.file, format_attribute, source.name, 64) == checkpoint_format;
  ensure(is_checkpoint, fmt::format("{} is an HDF5 file, but no checkpoint of Mylos", source.name));
  const auto version = read_hdf5_number<std::uint64_t>(source.file, version_attribute, source.name);
  ensure(version <= checkpoint_format_version,
         fmt::format("{}: checkpoint format {}, this version reads up to {}; use a newer Mylos", source.name, version,
                     checkpoint_format_version));
}

CheckpointRecord::Value read_member(hid_t run, const std::string& member, const std::string& name) {
  const Hdf5Id id(H5Aopen(run, member.c_str(), H5P_DEFAULT), H5Aclose);
  const Hdf5Id type(id.is_valid() ? H5Aget_type(id.get()) : -1, H5Tclose);
  if (!type.is_valid()) fail_hdf5(name, "read", "/run/" + member);
  switch (H5Tget_class(type.get())) {
    case H5T_INTEGER:
      return read_hdf5_number<std::uint64_t>(run, member.c_str(), name);
    case H5T_FLOAT:
      return read_hdf5_number<double>(run, member.c_str(), name);
    default:
      return read_hdf5_text(run, member.c_str(), name, longest_text);
  }
}

/// The name of link or attribute `index`, as `ask` tells it into a buffer.
std::string name_at(const std::function<ssize_t(char*, std::size_t)>& ask, const Source& source,
                    const std::string& of) {
  const ssize_t length = ask(nullptr, 0);
  if (length < 0) fail_hdf5(source.name, "read", of);
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  if (ask(text.data(), text.size()) < 0) fail_hdf5(source.name, "read", of);
  text.resize(static_cast<std::size_t>(length));
  return text;
}

CheckpointRecord read_record(const Source& source) {
  CheckpointRecord record(source.name);
  const Hdf5Id run(H5Gopen2(source.file, record_group, H5P_DEFAULT), H5Gclose);
  if (!run.is_valid()) fail_hdf5(source.name, "read", record_group);
  const int count = H5Aget_num_attrs(run.get());
  if (count < 0) fail_hdf5(source.name, "read", record_group);
  for (int i = 0; i < count; ++i) {
    const std::string member = name_at(
        [&](char* text, std::size_t size) {
          return H5Aget_name_by_idx(run.get(), ".", H5_INDEX_NAME, H5_ITER_INC, static_cast<hsize_t>(i), text, size,
                                    H5P_DEFAULT);
        },
        source, record_group);
    record.set(member, read_member(run.get(), member, source.name));
  }
  return record;
}

/// Where a dataset of one block lies; checked to be within the file.
std::uint64_t place_of(hid_t dataset, std::uint64_t bytes, const std::string& path, const Source& source) {
  const Hdf5Id properties(H5Dget_create_plist(dataset), H5Pclose);
  const bool is_block = properties.is_valid() && H5Pget_layout(properties.get()) == H5D_CONTIGUOUS &&
                        H5Pget_external_count(properties.get()) == 0;
  ensure(is_block, fmt::format("{}: {} does not lie in one piece, as Mylos writes it", source.name, path));
  const haddr_t offset = H5Dget_offset(dataset);
  ensure(offset != HADDR_UNDEF && H5Dget_storage_size(dataset) == bytes && offset <= source.bytes &&
             bytes <= source.bytes - offset,
         fmt::format("{}: {} reaches beyond the file: it is truncated", source.name, path));
  return offset;
}

std::vector<std::size_t> shape_of(hid_t dataset, const std::string& path, const Source& source) {
  const Hdf5Id space(H5Dget_space(dataset), H5Sclose);
  const int rank = space.is_valid() ? H5Sget_simple_extent_ndims(space.get()) : -1;
  ensure(rank >= 0 && rank <= static_cast<int>(most_dimensions),
         fmt::format("{}: {} has {} dimensions", source.name, path, rank));
  std::array<hsize_t, most_dimensions> sizes{};
  H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
  return {sizes.begin(), sizes.begin() + rank};
}

/// Elements, where they fit in the file.
std::uint64_t size_of(std::span<const std::size_t> shape, const std::string& path, const Source& source) {
  std::uint64_t size = 1;
  for (const std::size_t extent : shape) {
    ensure(extent > 0 && size <= source.bytes / extent,
           fmt::format("{}: {} has shape {}, which the file is too short for", source.name, path, shape_text(shape)));
    size *= extent;
  }
  return size;
}

/// That the ranges of a table are in order, none missing and none too long.
void check_ranges(const CheckpointDataset& dataset, const Source& source) {
  std::uint64_t next = 0;
  for (const ChecksumRange& range : dataset.ranges) {
    const bool follows = range.first == next && range.count > 0 && range.count <= checksum_elements &&
                         range.count <= dataset.size - next;
    ensure(follows, fmt::format("{}: {}{}: elements {} to {} do not follow {}: the file is damaged", source.name,
                                checksums_group, dataset.name, range.first, range.first + range.count, next));
    next += range.count;
  }
  ensure(next == dataset.size, fmt::format("{}: {}{} ends at element {} of {}: the file is damaged", source.name,
                                           checksums_group, dataset.name, next, dataset.size));
}

std::vector<ChecksumRange> read_ranges(const std::string& of, const Source& source) {
  const std::string path = checksums_group + of;
  const Hdf5Id dataset(H5Dopen2(source.file, path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.is_valid()) fail_hdf5(source.name, "read", path);
  const std::vector<std::size_t> shape = shape_of(dataset.get(), path, source);
  std::vector<ChecksumRange> ranges(size_of(shape, path, source));
  place_of(dataset.get(), ranges.size() * checksum_row_bytes, path, source);
  const Hdf5Id type(H5Tcreate(H5T_COMPOUND, sizeof(ChecksumRange)), H5Tclose);
  H5Tinsert(type.get(), "first", offsetof(ChecksumRange, first), H5T_NATIVE_UINT64);
  H5Tinsert(type.get(), "count", offsetof(ChecksumRange, count), H5T_NATIVE_UINT64);
  H5Tinsert(type.get(), "crc32c", offsetof(ChecksumRange, crc32c), H5T_NATIVE_UINT32);
  if (H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, ranges.data()) < 0) {
    fail_hdf5(source.name, "read", path);
  }
  return ranges;
}

CheckpointDataset describe(hid_t dataset, const std::string& path, const Source& source) {
  const Hdf5Id type(H5Dget_type(dataset), H5Tclose);
  ensure(type.is_valid() && H5Tequal(type.get(), H5T_IEEE_F32LE) > 0,
         fmt::format("{}: {} does not hold float values", source.name, path));
  CheckpointDataset described{.name = path, .shape = shape_of(dataset, path, source)};
  described.size = size_of(described.shape, path, source);
  described.offset = place_of(dataset, described.size * sizeof(float), path, source);
  described.ranges = read_ranges(path, source);
  check_ranges(described, source);
  return described;
}

void collect(hid_t group, const std::string& path, int depth, const Source& source,
             std::vector<CheckpointDataset>& datasets) {
  ensure(depth < deepest_group, fmt::format("{}: {} is too deep", source.name, path));
  H5G_info_t info;
  if (H5Gget_info(group, &info) < 0) fail_hdf5(source.name, "read", path);
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const auto ask = [&](char* text, std::size_t size) {
      return H5Lget_name_by_idx(group, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, i, text, size, H5P_DEFAULT);
    };
    const std::string name = name_at(ask, source, path);
    const std::string child_path = fmt::format("{}/{}", path, name);
    const Hdf5Id child(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
    if (!child.is_valid()) fail_hdf5(source.name, "read", child_path);
    if (H5Iget_type(child.get()) == H5I_DATASET) {
      datasets.push_back(describe(child.get(), child_path, source));
    } else {
      collect(child.get(), child_path, depth + 1, source, datasets);
    }
  }
}

}  // namespace

CheckpointIndex read_checkpoint_index(const std::filesystem::path& path) {
  const std::uint64_t bytes = PositionedFile(path, PositionedFile::Use::read).size();
  const Hdf5Id file(open_hdf5_file(path), H5Fclose);
  const Source source{path.string(), bytes, file.get()};
  check_format(source);
  CheckpointIndex index{read_record(source), {}};
  for (const char* top : {"/model", "/state", "/optimizer"}) {
    if (H5Lexists(file.get(), top, H5P_DEFAULT) <= 0) continue;
    const Hdf5Id group(H5Gopen2(file.get(), top, H5P_DEFAULT), H5Gclose);
    if (!group.is_valid()) fail_hdf5(source.name, "read", top);
    collect(group.get(), top, 0, source, index.datasets);
  }
  return index;
}

}  // namespace mylos::parallel
