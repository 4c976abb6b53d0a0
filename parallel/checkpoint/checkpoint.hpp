#pragma once

#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/checkpoint/checkpoint_record.hpp"
#include "parallel/checkpoint/frozen_file.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/sharding/sharding_strategy.hpp"

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

/// Saving the state of a run, and loading it with any number of ranks. All functions are collective over `world`. A few
/// ranks write the data of all ranks to one file; on loading, ranks that hold the same data share the reading. Both
/// need only a few MiB of memory. Only rank 0 looks up files. Errors: std::runtime_error on every rank, naming the file
/// and the problem.
namespace mylos::parallel {

/// Elements [begin, end) of a unit that this rank holds.
struct HeldRange {
  std::size_t unit = 0;
  std::size_t begin = 0;
  std::size_t end = 0;  ///< may extend beyond the unit, into padding that is not saved
};

/// A group of float values, one for each element of the parameters: "model", "optimizer/m".
struct CheckpointGroup {
  std::string name;
  std::vector<Vector<float>> parts;  ///< elements of each held range
};

/// The data to be saved or loaded, as this rank holds it.
struct CheckpointArrays {
  const ParameterTable* table = nullptr;
  std::vector<HeldRange> held;
  Communicator* copies = nullptr;  ///< ranks that hold the same ranges, in the same order; null if there are no others
  std::vector<CheckpointGroup> groups;
  std::vector<Vector<float>> state;  ///< all values of each state tensor, on every rank
  /// The elements of a unit that a rank saves, by itself or through its writer. They must lie in its held ranges; the
  /// ranges of all ranks must be disjoint and cover the unit.
  std::function<UnitRange(std::size_t unit, std::size_t rank)> saved_range;
  /// The file of the frozen tensors' values, used on rank 0 only: without a name until one is saved or loaded. Null:
  /// each checkpoint has them itself.
  FrozenFile* frozen = nullptr;
};

/// Returns the bytes of all arrays in the files, over all ranks.
CheckpointBytes checkpoint_bytes(const CheckpointArrays& arrays);

/// The result of a save, with the time that this rank took until the data was on disk.
struct SaveReport {
  std::filesystem::path file;
  std::size_t bytes = 0;  ///< bytes of all arrays that were written
  double seconds = 0.0;
  std::string warning = {};  ///< errors after the file was complete: in writing `latest` or removing old checkpoints

  double bytes_per_second() const { return seconds > 0.0 ? static_cast<double>(bytes) / seconds : 0.0; }
};

/// Prepares the directory of checkpoints. Removes leftovers of interrupted saves. Checks that the directory is
/// writable, that `kept` checkpoints of `bytes` and the one being written fit, and that every rank sees the files that
/// rank 0 writes there.
void prepare_checkpoints(Communicator& world, const std::filesystem::path& directory, const CheckpointBytes& bytes,
                         std::size_t kept);

/// Saves a checkpoint as <directory>/step-000123.h5, with the values as of all kernels launched before the call. The
/// file is written under another name, flushed and renamed, and `latest` is updated. Then old checkpoints beyond the
/// newest `keep` (at least 1) are removed. So are checkpoints of later steps, which another branch of the run left.
/// Damaged checkpoints do not count; to find them, files that this run has not written or loaded itself are read.
///
/// If `arrays.frozen` is given, the values of frozen tensors are written once, to <directory>/frozen-000123.h5 before
/// the first checkpoint there. Those after it only name that file.
///
/// If the save fails, existing checkpoints stay. Errors after the renaming are returned as a warning, because the
/// checkpoint is complete and find_checkpoint finds it. `record` is used on rank 0 only. `writer_of` gives the writer
/// of each rank's data (see choose_writers); if empty, each rank writes its own. The file does not depend on it.
/// `check` is called on rank 0 before the renaming, and its error is the save's.
SaveReport save_checkpoint(Communicator& world, const std::filesystem::path& directory, std::size_t step,
                           const CheckpointArrays& arrays, const CheckpointRecord& record, std::size_t keep,
                           std::span<const std::size_t> writer_of = {}, const std::function<void()>& check = {});

/// Returns the file that `path` refers to (see resolve_checkpoint), the same on every rank; empty if there is none.
std::filesystem::path find_checkpoint(Communicator& world, const std::filesystem::path& path);

/// Reads only the record, and checks only the file's format. If a file is damaged, the error of this function and of
/// load_checkpoint names the last intact checkpoint before it.
CheckpointRecord read_checkpoint_record(Communicator& world, const std::filesystem::path& file);

/// Loads `arrays` from a file, which must contain the same arrays. Values are verified against their checksums. Ranks
/// that hold the same data take turns in reading parts of it, and broadcast them to each other. saved_range is not
/// used.
void load_checkpoint(Communicator& world, const std::filesystem::path& file, const CheckpointArrays& arrays);

}  // namespace mylos::parallel
