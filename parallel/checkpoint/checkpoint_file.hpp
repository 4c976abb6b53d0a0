#pragma once

#include "core/base/files/positioned_file.hpp"
#include "parallel/checkpoint/checkpoint_record.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

/// The HDF5 file of a checkpoint, on the host of one process. Needs neither Kokkos nor MPI to be initialised. Errors:
/// std::runtime_error that names the file and the dataset.
namespace mylos::parallel {

/// Maximum number of elements per checksum: 1 MiB.
inline constexpr std::size_t checksum_elements = std::size_t{1} << 18;

/// A dataset of float values to be created.
struct DatasetShape {
  std::string name;  ///< "/model/encoder.layer.0.output.dense.bias"
  std::vector<std::size_t> shape;
  std::size_t ranges = 0;  ///< number of ranges, each with a checksum

  std::size_t size() const;  ///< in elements
};

/// The offsets of a dataset and of its checksum table in the file, in bytes.
struct DatasetSlot {
  std::uint64_t values = 0;
  std::uint64_t checksums = 0;
};

/// Elements [first, first + count) of a dataset, and the CRC-32C of their bytes.
struct ChecksumRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint32_t crc32c = 0;
};
inline auto members(ChecksumRange& range) {
  auto& [first, count, crc32c] = range;  // does not compile if one is forgotten
  return std::tie(first, count, crc32c);
}
/// Bytes of a row in a checksum table.
inline constexpr std::size_t checksum_row_bytes = 20;
/// Writes `range` in the file's format.
void pack_checksum_row(const ChecksumRange& range, std::span<std::byte, checksum_row_bytes> bytes);

/// Creates a new file with all datasets and checksum tables, uninitialised. Its disk space is reserved, so that a full
/// disk is detected here. `record` is stored in /run. Returns the slot of each dataset.
std::vector<DatasetSlot> create_checkpoint_file(const std::filesystem::path& path,
                                                std::span<const DatasetShape> datasets, const CheckpointRecord& record);

/// A dataset of a checkpoint, in its file or in the one that it names for frozen tensors.
struct CheckpointDataset {
  std::string name;
  std::vector<std::size_t> shape;
  std::uint64_t size = 0;                  ///< in elements
  std::uint64_t offset = 0;                ///< offset of its first byte in the file
  std::vector<ChecksumRange> ranges = {};  ///< in order, covering all elements
  std::shared_ptr<const PositionedFile> file = {};
};

/// The contents of a checkpoint except for its values.
struct CheckpointIndex {
  CheckpointRecord record;
  std::vector<CheckpointDataset> datasets;  ///< in order of creation, those of the file of frozen tensors first

  const CheckpointDataset* find(std::string_view name) const;
};
CheckpointIndex read_checkpoint_index(const std::filesystem::path& path);
/// Returns what stands in this file, without the datasets of the one that it names for frozen tensors.
CheckpointIndex read_own_index(const std::filesystem::path& path);
/// Returns the record alone, and reads little.
CheckpointRecord read_checkpoint_record(const std::filesystem::path& path);

/// Reads a range and verifies its checksum. `values` must have range.count elements. Errors: name the file, the dataset
/// and the damaged elements.
void read_range(const CheckpointDataset& dataset, const ChecksumRange& range, std::span<float> values);

/// Reads a dataset range by range, verifies each range, and passes its values to `take`.
void read_dataset(const CheckpointDataset& dataset, const std::function<void(std::span<const float> values)>& take);

/// Reads all values of a checkpoint and verifies their checksums. Returns the number of bytes read.
std::uint64_t verify_checkpoint(const std::filesystem::path& path);

}  // namespace mylos::parallel
