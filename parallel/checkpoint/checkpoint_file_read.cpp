// Reads the index of a checkpoint's file and checks that it is intact. Sizes in the file are compared with the file's
// size before they are used.
#include "core/base/error.hpp"
#include "core/base/files/hdf5_source.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "parallel/checkpoint/checkpoint_format.hpp"
#include "parallel/checkpoint/frozen_file.hpp"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace mylos::parallel {
namespace {

constexpr std::size_t longest_text = 16 << 20;  // bytes of an attribute
constexpr std::size_t most_members = 1024;      // attributes of /run
constexpr int deepest_group = 8;
constexpr std::size_t longest_path = 1024;       // in bytes
constexpr std::size_t least_object_bytes = 64;   // lower bound for a group or dataset; HDF5 takes more
constexpr std::uint64_t rows_at_once = 1 << 12;  // rows of a checksum table

void check_format(const Hdf5Source& source) {
  const bool is_checkpoint = has_hdf5_attribute(source.id(), format_attribute, source.name()) &&
                             read_hdf5_text(source.id(), format_attribute, source.name(), 64) == checkpoint_format;
  ensure(is_checkpoint, fmt::format("{} is an HDF5 file, but not a checkpoint of Mylos", source.name()));
  const auto version = read_hdf5_number<std::uint64_t>(source.id(), version_attribute, source.name());
  ensure(version <= checkpoint_format_version,
         fmt::format("{}: checkpoint format {}, this version reads up to {}; use a newer Mylos", source.name(), version,
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

/// HDF5 has no checksum for an attribute above 4 KiB, such as the configuration. Older files have none of ours either.
void check_record(const CheckpointRecord& record, const Hdf5Source& source) {
  if (!has_hdf5_attribute(source.id(), record_checksum_attribute, source.name())) return;
  const auto expected = read_hdf5_number<std::uint32_t>(source.id(), record_checksum_attribute, source.name());
  const std::uint32_t found = record.checksum();
  ensure(found == expected, fmt::format("{}: {}: CRC32C is {:08x}, not {:08x}: the file is damaged", source.name(),
                                        record_group, found, expected));
}

herr_t take_name(hid_t, const char* name, const H5A_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

CheckpointRecord read_record(const Hdf5Source& source) {
  const Hdf5Id run(source.open(record_group), H5Oclose);
  std::vector<std::string> names;
  hsize_t position = 0;
  const auto done = H5Aiterate2(run.get(), H5_INDEX_NAME, H5_ITER_NATIVE, &position, take_name, &names);
  if (done < 0) fail_hdf5(source.name(), "read", record_group);
  ensure(names.size() <= most_members, fmt::format("{}: {} has {} members, more than the {} that are read",
                                                   source.name(), record_group, names.size(), most_members));
  std::ranges::sort(names);
  CheckpointRecord record(source.name());
  for (const std::string& name : names) record.set(name, read_member(run.get(), name, source.name()));
  check_record(record, source);
  return record;
}

/// Checks that `range` begins at element `next` and is not too long.
void check_range(const ChecksumRange& range, std::uint64_t next, const CheckpointDataset& dataset,
                 const Hdf5Source& source) {
  const bool follows =
      range.first == next && range.count > 0 && range.count <= checksum_elements && range.count <= dataset.size - next;
  ensure(follows, fmt::format("{}: {}{}: elements {} to {} do not follow {}: the file is damaged", source.name(),
                              checksums_group, dataset.name, range.first, range.first + range.count, next));
}

/// Reads rows of a checksum table, from row `first` on.
void read_rows(hid_t table, hsize_t first, std::span<ChecksumRange> rows, const std::string& path,
               const Hdf5Source& source) {
  const Hdf5Id type(H5Tcreate(H5T_COMPOUND, sizeof(ChecksumRange)), H5Tclose);
  H5Tinsert(type.get(), "first", offsetof(ChecksumRange, first), H5T_NATIVE_UINT64);
  H5Tinsert(type.get(), "count", offsetof(ChecksumRange, count), H5T_NATIVE_UINT64);
  H5Tinsert(type.get(), "crc32c", offsetof(ChecksumRange, crc32c), H5T_NATIVE_UINT32);
  const hsize_t count = rows.size();
  const Hdf5Id in_memory(H5Screate_simple(1, &count, nullptr), H5Sclose), in_file(H5Dget_space(table), H5Sclose);
  H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr);
  const bool is_read = H5Dread(table, type.get(), in_memory.get(), in_file.get(), H5P_DEFAULT, rows.data()) >= 0;
  if (!is_read) fail_hdf5(source.name(), "read", path);
}

/// Returns the ranges of a dataset in order, and checks that none is missing or too long. Rows are checked before the
/// next ones are read, so that a long table without content takes no memory.
std::vector<ChecksumRange> read_ranges(const CheckpointDataset& dataset, Hdf5Source& source) {
  const std::string path = checksums_group + dataset.name;
  const Hdf5Id table(source.open(path), H5Oclose);
  const Hdf5Array rows = source.locate(table.get(), checksum_row_bytes, path);
  ensure(rows.shape.size() == 1, fmt::format("{}: {} is not one-dimensional", source.name(), path));
  std::vector<ChecksumRange> ranges;
  std::uint64_t next = 0;
  while (ranges.size() < rows.size) {
    const std::size_t first = ranges.size();
    ranges.resize(std::min(rows.size, first + rows_at_once));
    const std::span<ChecksumRange> added = std::span(ranges).subspan(first);
    read_rows(table.get(), first, added, path, source);
    for (const ChecksumRange& range : added) {
      check_range(range, next, dataset, source);
      next += range.count;
    }
  }
  ensure(next == dataset.size,
         fmt::format("{}: {} ends at element {} of {}: the file is damaged", source.name(), path, next, dataset.size));
  return ranges;
}

CheckpointDataset describe(hid_t dataset, const std::string& path, Hdf5Source& source) {
  const Hdf5Id type(H5Dget_type(dataset), H5Tclose);
  ensure(type.is_valid() && H5Tequal(type.get(), H5T_IEEE_F32LE) > 0,
         fmt::format("{}: {} does not hold float values", source.name(), path));
  Hdf5Array slot = source.locate(dataset, sizeof(float), path);
  CheckpointDataset described{path, std::move(slot.shape), slot.size, slot.offset};
  described.ranges = read_ranges(described, source);
  return described;
}

struct Link {
  std::int64_t order;  ///< of creation
  std::string name;
};

herr_t take_link(hid_t, const char* name, const H5L_info_t* link, void* links) {
  static_cast<std::vector<Link>*>(links)->push_back({link->corder_valid ? link->corder : 0, name});
  return 0;
}

/// Returns the links of a group in order of creation. If a group of more than 8 links is damaged, HDF5 1.10 frees
/// invalid pointers when it sorts them itself, so this lists them in the order of its index.
std::vector<Link> links_of(hid_t group, const std::string& path, const Hdf5Source& source) {
  std::vector<Link> links;
  hsize_t position = 0;
  const auto done = H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &position, take_link, &links);
  if (done < 0) fail_hdf5(source.name(), "read", path);
  std::ranges::sort(links, {}, [](const Link& link) { return std::tie(link.order, link.name); });
  return links;
}

/// Visits the groups and datasets of a file in order of creation.
class DatasetWalk {
 public:
  DatasetWalk(Hdf5Source& source, std::vector<CheckpointDataset>& datasets)
      : source_(source), datasets_(datasets), most_objects_(source.bytes() / least_object_bytes) {}

  void visit(const std::string& path, int depth = 0) {
    // A group with several names is visited once per path, and the number of paths is not bounded by the file's size.
    ensure(path.size() <= longest_path, fmt::format("{}: {}... is longer than {} bytes", source_.name(),
                                                    path.substr(0, longest_path / 8), longest_path));
    ensure(++objects_ <= most_objects_,
           fmt::format("{}: {} is one of more groups and datasets than {} bytes can hold: some have several names",
                       source_.name(), path, source_.bytes()));
    const Hdf5Id object(source_.open(path), H5Oclose);
    if (H5Iget_type(object.get()) == H5I_DATASET) {
      datasets_.push_back(describe(object.get(), path, source_));
      return;
    }
    ensure(depth < deepest_group, fmt::format("{}: {} is too deep", source_.name(), path));
    for (const Link& link : links_of(object.get(), path, source_)) {
      visit(fmt::format("{}/{}", path, link.name), depth + 1);
    }
  }

 private:
  Hdf5Source& source_;
  std::vector<CheckpointDataset>& datasets_;
  std::size_t objects_ = 0, most_objects_;
};

}  // namespace

CheckpointIndex read_own_index(const std::filesystem::path& path) {
  // Before HDF5, which does not report why a file cannot be opened.
  const auto file = std::make_shared<const PositionedFile>(path, PositionedFile::Use::read);
  Hdf5Source source(path);
  check_format(source);
  CheckpointIndex index{read_record(source), {}};
  DatasetWalk walk(source, index.datasets);
  for (const char* top : {"/model", "/state", "/optimizer"}) {
    const auto exists = H5Lexists(source.id(), top, H5P_DEFAULT);
    if (exists < 0) fail_hdf5(source.name(), "look for", top);
    if (exists > 0) walk.visit(top);
  }
  for (CheckpointDataset& dataset : index.datasets) dataset.file = file;
  return index;
}

CheckpointRecord read_checkpoint_record(const std::filesystem::path& path) {
  const PositionedFile readable(path, PositionedFile::Use::read);
  const Hdf5Source source(path);
  check_format(source);
  return read_record(source);
}

CheckpointIndex read_checkpoint_index(const std::filesystem::path& path) {
  CheckpointIndex index = read_own_index(path);
  const FrozenFile frozen = recorded_frozen(index.record, path);
  if (frozen.name.empty()) return index;
  std::vector<CheckpointDataset> datasets = read_frozen_datasets(frozen, path);
  for (const CheckpointDataset& dataset : datasets) {
    ensure(index.find(dataset.name) == nullptr, fmt::format("{}: {} stands in it and in its file of frozen tensors, {}",
                                                            path.string(), dataset.name, frozen.name));
  }
  std::ranges::move(index.datasets, std::back_inserter(datasets));
  index.datasets = std::move(datasets);
  return index;
}

}  // namespace mylos::parallel
