#pragma once

#include "parallel/checkpoint/checkpoint_file.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

/// The file with the values of frozen tensors, in the format of a checkpoint. They never change in a run, so that all
/// checkpoints of a directory name one such file there, and hold only what is trained.
namespace mylos::parallel {

/// Names a file of frozen values in the directory of its checkpoints, and identifies its content.
struct FrozenFile {
  std::string name = {};       ///< "frozen-000123.h5"; empty if there is no file
  std::uint32_t checksum = 0;  ///< the CRC-32C of its tables of checksums, one after the other
};

/// Returns the file with this name, and the checksum of its content. Errors: it cannot be read.
FrozenFile identify_frozen(const std::filesystem::path& file);
/// Returns whether `frozen` stands in the directory: it can be read, and has the checksum. Values are not read.
bool holds_frozen(const std::filesystem::path& directory, const FrozenFile& frozen);

/// Writes the name and the checksum to a checkpoint's record.
void record_frozen(CheckpointRecord& record, const FrozenFile& frozen);
/// Returns whether the record names a file of frozen values.
bool names_frozen(const CheckpointRecord& record);
/// Returns the file that the record of checkpoint `file` names; without a name if the checkpoint has all values itself,
/// as those of versions without such files and of runs without frozen tensors. Errors: what it names is not such a
/// file.
FrozenFile recorded_frozen(const CheckpointRecord& record, const std::filesystem::path& file);

/// Returns what to do about a file of frozen tensors that cannot be used, after a semicolon; empty for another file.
std::string advice_on_frozen(const std::filesystem::path& file);

/// Returns the datasets of the file that checkpoint `file` names. Errors: it is missing, damaged or another one; the
/// message names both files. `file` may be a link: the named file then stands beside it or beside what it links to.
std::vector<CheckpointDataset> read_frozen_datasets(const FrozenFile& frozen, const std::filesystem::path& file);

}  // namespace mylos::parallel
