#include "parallel/checkpoint/frozen_file.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"

#include <fmt/format.h>

namespace mylos::parallel {
namespace {

namespace fs = std::filesystem;

constexpr const char *name_member = "frozen_file", *checksum_member = "frozen_crc32c";

std::uint32_t checksum_of(const std::vector<CheckpointDataset>& datasets) {
  std::vector<std::byte> rows;
  for (const CheckpointDataset& dataset : datasets) {
    for (const ChecksumRange& range : dataset.ranges) {
      rows.resize(rows.size() + checksum_row_bytes);
      pack_checksum_row(range, std::span(rows).last<checksum_row_bytes>());
    }
  }
  return crc32c(rows);
}

}  // namespace

FrozenFile identify_frozen(const fs::path& file) {
  return {file.filename().string(), checksum_of(read_own_index(file).datasets)};
}

bool holds_frozen(const fs::path& directory, const FrozenFile& frozen) {
  try {
    return !frozen.name.empty() && identify_frozen(directory / frozen.name).checksum == frozen.checksum;
  } catch (const std::exception&) {  // the message is for users who resume from a checkpoint that names it
    return false;
  }
}

void record_frozen(CheckpointRecord& record, const FrozenFile& frozen) {
  record.set(name_member, frozen.name);
  record.set(checksum_member, std::uint64_t{frozen.checksum});
}

bool names_frozen(const CheckpointRecord& record) { return record.has(name_member); }

FrozenFile recorded_frozen(const CheckpointRecord& record, const fs::path& file) {
  if (!names_frozen(record)) return {};
  const std::string& name = record.text(name_member);
  ensure(is_frozen_file_name(name), fmt::format("{}: /run/{} is {}, not a file of frozen tensors such as {}",
                                                file.string(), name_member, name, frozen_file_name(1).string()));
  return {name, static_cast<std::uint32_t>(record.integer(checksum_member))};
}

std::string advice_on_frozen(const fs::path& file) {
  const std::string name = file.filename().string();
  return is_frozen_file_name(name)
             ? fmt::format("; restore {} from a copy, or from the directory in which the checkpoint was written", name)
             : "";
}

std::vector<CheckpointDataset> read_frozen_datasets(const FrozenFile& frozen, const fs::path& file) {
  fs::path named = file.parent_path() / frozen.name;
  try {
    if (fs::is_symlink(file) && !fs::exists(named)) named = fs::canonical(file).parent_path() / frozen.name;
    std::vector<CheckpointDataset> datasets = read_own_index(named).datasets;
    const std::uint32_t found = checksum_of(datasets);
    ensure(found == frozen.checksum, fmt::format("{}: CRC32C of its tables of checksums is {:08x}, not {:08x}: it is "
                                                 "another file",
                                                 named.string(), found, frozen.checksum));
    return datasets;
  } catch (const std::runtime_error& error) {
    fail(fmt::format("{}: the file of its frozen tensors: {}{}", file.string(), error.what(), advice_on_frozen(named)));
  }
}

}  // namespace mylos::parallel
