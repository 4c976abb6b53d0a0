#pragma once

#include "parallel/checkpoint/checkpoint_record.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/sharding/sharding_strategy.hpp"

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

/// Saving what a run is made of, and reading it with any number of ranks. All functions are collective over `world`.
/// A few ranks write to one file what all of them own, and read it together; memory for a few MiB is all
/// that either takes. Only rank 0 asks the file system what is there. Errors: std::runtime_error on every rank, with
/// the file and what is wrong with it.
namespace mylos::parallel {

/// Elements [begin, end) of a unit that this rank holds.
struct HeldRange {
  std::size_t unit = 0;
  std::size_t begin = 0;
  std::size_t end = 0;  ///< may reach beyond the unit, into padding that is not saved
};

/// A float value for every element of the parameters: "model", "optimizer/m".
struct CheckpointGroup {
  std::string name;
  std::vector<Vector<float>> parts;  ///< for each held range its elements
};

/// What is saved, as this rank has it.
struct CheckpointArrays {
  const ParameterTable* table = nullptr;
  std::vector<HeldRange> held;
  Communicator* copies = nullptr;  ///< the ranks that hold the same ranges, in one order; none: no other rank does
  std::vector<CheckpointGroup> groups;
  std::vector<Vector<float>> state;  ///< of every state tensor all values, on every rank
  /// The elements of a unit that a rank saves, by itself or through its writer: within what it holds; those of all
  /// ranks are disjoint and all of the unit.
  std::function<UnitRange(std::size_t unit, std::size_t rank)> saved_range;
};

/// Bytes of all arrays in the file, over all ranks.
std::size_t checkpoint_bytes(const CheckpointArrays& arrays);

/// Of one rank: the arrays and the time until they were on the disk.
struct SaveReport {
  std::filesystem::path file;
  std::size_t bytes = 0;  ///< of all arrays
  double seconds = 0.0;
  std::string warning = {};  ///< what failed when the file was complete: `latest`, or removing older ones

  double bytes_per_second() const { return seconds > 0.0 ? static_cast<double>(bytes) / seconds : 0.0; }
};

/// Makes the directory of checkpoints ready: removes what killed saves left, and proves that it can be written, that
/// `kept` checkpoints of `bytes` and the one being written fit, and that every rank sees what rank 0 writes there.
void prepare_checkpoints(Communicator& world, const std::filesystem::path& directory, std::size_t bytes,
                         std::size_t kept);

/// Writes <directory>/step-000123.h5 under another name, flushes and renames it, points `latest` to it, and then
/// removes the oldest beyond `keep` (at least 1) and those of later steps, which another branch of the run left.
/// Damaged ones do not count; what this run has not written or loaded itself is read to know. Where it fails, what was
/// there stays. What fails after the renaming is a warning: the checkpoint is complete, and find_checkpoint finds it.
/// `record` is rank 0's. Values are as of what was launched before. `writer_of` says for each rank which one writes
/// what it saves (see choose_writers); empty: each writes its own. The file does not depend on it.
SaveReport save_checkpoint(Communicator& world, const std::filesystem::path& directory, std::size_t step,
                           const CheckpointArrays& arrays, const CheckpointRecord& record, std::size_t keep,
                           std::span<const std::size_t> writer_of = {});

/// The file that `path` means (see resolve_checkpoint), the same on every rank; empty where there is none.
std::filesystem::path find_checkpoint(Communicator& world, const std::filesystem::path& path);

/// The record alone. Checks nothing but the file's format. Where a file is damaged, its error and that of
/// load_checkpoint name the last whole checkpoint before it.
CheckpointRecord read_checkpoint_record(Communicator& world, const std::filesystem::path& file);

/// Fills `arrays` from a file, whose arrays have to be the same ones; values that arrive are compared with their
/// checksums. Ranks that hold the same take turns in reading it, and pass on what they read. saved_range is not used.
void load_checkpoint(Communicator& world, const std::filesystem::path& file, const CheckpointArrays& arrays);

}  // namespace mylos::parallel
