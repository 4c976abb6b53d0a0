#pragma once

#include "core/base/positioned_file.hpp"
#include "parallel/checkpoint/checkpoint_record.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

/// The HDF5 file of a checkpoint, on the host of one process; needs neither Kokkos nor MPI to run. A build without HDF5
/// says so where it is asked for a file. Errors: std::runtime_error naming the file and the dataset.
namespace mylos::parallel {

/// Elements of a range at most: 1 MiB.
inline constexpr std::size_t checksum_elements = std::size_t{1} << 18;

/// A dataset that is to be, of float values.
struct DatasetShape {
  std::string name;  ///< "/model/encoder.layer.0.output.dense.bias"
  std::vector<std::size_t> shape;
  std::size_t ranges = 0;  ///< with a checksum each

  std::size_t size() const;  ///< elements
};
/// "(2, 3)".
std::string shape_text(std::span<const std::size_t> shape);

/// Where the bytes of a dataset and of its table of checksums begin in the file.
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
/// Bytes of a row of a table of checksums.
inline constexpr std::size_t checksum_row_bytes = 20;
/// Writes `range` as the file has it.
void pack_checksum_row(const ChecksumRange& range, std::span<std::byte, checksum_row_bytes> bytes);

/// Whether this build writes and reads checkpoints.
bool has_checkpoint_files();

/// Makes a file that is not there yet, with all datasets and their tables, not filled, and its space reserved, so that
/// a full disk is found here. `record` becomes /run. Returns where each dataset lies.
std::vector<DatasetSlot> create_checkpoint_file(const std::filesystem::path& path,
                                                std::span<const DatasetShape> datasets, const CheckpointRecord& record);

/// A dataset that is in a file.
struct CheckpointDataset {
  std::string name;
  std::vector<std::size_t> shape;
  std::uint64_t size = 0;                  ///< elements
  std::uint64_t offset = 0;                ///< of its first byte in the file
  std::vector<ChecksumRange> ranges = {};  ///< in order, all of its elements
};

/// What a file says of itself, its values apart.
struct CheckpointIndex {
  CheckpointRecord record;
  std::vector<CheckpointDataset> datasets;  ///< in the order in which they were made

  const CheckpointDataset* find(std::string_view name) const;
};
CheckpointIndex read_checkpoint_index(const std::filesystem::path& path);

/// Reads a range (`values` has its count) and compares its checksum. Errors: the file, the dataset and the elements
/// that are damaged.
void read_range(const PositionedFile& file, const CheckpointDataset& dataset, const ChecksumRange& range,
                std::span<float> values);

/// Gives `take` all values of a dataset, range by range; checked.
void read_dataset(const PositionedFile& file, const CheckpointDataset& dataset,
                  const std::function<void(std::span<const float> values)>& take);

/// Reads every value of a file and compares it with its checksum. Returns the bytes read.
std::uint64_t verify_checkpoint(const std::filesystem::path& path);

}  // namespace mylos::parallel
