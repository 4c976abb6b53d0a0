#include "parallel/checkpoint/checkpoint_file.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "parallel/checkpoint/frozen_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>

namespace mylos::parallel {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

std::size_t DatasetShape::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

void pack_checksum_row(const ChecksumRange& range, std::span<std::byte, checksum_row_bytes> bytes) {
  std::memcpy(bytes.data(), &range.first, 8);
  std::memcpy(bytes.data() + 8, &range.count, 8);
  std::memcpy(bytes.data() + 16, &range.crc32c, 4);
}

const CheckpointDataset* CheckpointIndex::find(std::string_view name) const {
  const auto found = std::ranges::find(datasets, name, &CheckpointDataset::name);
  return found == datasets.end() ? nullptr : &*found;
}

void read_range(const CheckpointDataset& dataset, const ChecksumRange& range, std::span<float> values) {
  require(values.size() == range.count, fmt::format("{}: {} values for {}", dataset.name, values.size(), range.count));
  dataset.file->read(dataset.offset + range.first * sizeof(float), std::as_writable_bytes(values));
  const std::uint32_t found = crc32c(std::as_bytes(values));
  if (found == range.crc32c) return;
  fail(fmt::format("{}: {}, elements {} to {}: CRC32C is {:08x}, not {:08x}: the file is damaged{}",
                   dataset.file->path().string(), dataset.name, range.first, range.first + range.count, found,
                   range.crc32c, advice_on_frozen(dataset.file->path())));
}

void read_dataset(const CheckpointDataset& dataset, const std::function<void(std::span<const float> values)>& take) {
  std::vector<float> buffer(std::min<std::uint64_t>(dataset.size, checksum_elements));
  for (const ChecksumRange& range : dataset.ranges) {
    const std::span<float> values = std::span(buffer).first(range.count);
    read_range(dataset, range, values);
    take(values);
  }
}

std::uint64_t verify_checkpoint(const std::filesystem::path& path) {
  const CheckpointIndex index = read_checkpoint_index(path);
  std::uint64_t bytes = 0;
  for (const CheckpointDataset& dataset : index.datasets) {
    read_dataset(dataset, [&](std::span<const float> values) { bytes += values.size_bytes(); });
  }
  return bytes;
}

}  // namespace mylos::parallel
