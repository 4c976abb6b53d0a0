#include "core/base/error.hpp"
#include "core/base/process/process.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/stopwatch.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/checkpoint/checkpoint_layout.hpp"
#include "parallel/checkpoint/values_writer.hpp"
#include "parallel/checkpoint/whole_checkpoints.hpp"
#include "parallel/communicator/file_work.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <numeric>

namespace mylos::parallel {
namespace {

namespace fs = std::filesystem;

/// The files in which a checkpoint's datasets stand.
enum class FileKind { checkpoint, frozen };

std::vector<PlannedDataset> datasets_of(const CheckpointArrays& arrays, FileKind kind) {
  std::vector<PlannedDataset> datasets = plan_datasets(arrays);
  std::erase_if(datasets, [&](const PlannedDataset& dataset) {
    return (arrays.frozen != nullptr && dataset.is_frozen()) != (kind == FileKind::frozen);
  });
  return datasets;
}

std::size_t bytes_of(const std::vector<PlannedDataset>& datasets) {
  std::size_t elements = 0;
  for (const PlannedDataset& dataset : datasets) elements += dataset.tensor->size;
  return elements * sizeof(float);
}

PlannedFile plan_file(const CheckpointArrays& arrays, FileKind kind, std::size_t ranks) {
  PlannedFile plan{datasets_of(arrays, kind), {}, {}};
  for (PlannedDataset& dataset : plan.datasets) {
    plan.ranges.push_back(written_ranges(arrays, dataset, ranks));
    dataset.shape.ranges = plan.ranges.back().size();
  }
  return plan;
}

/// Creates the file on rank 0, and returns the slots of its datasets.
std::vector<DatasetSlot> create_file(Communicator& world, const fs::path& file, const PlannedFile& plan,
                                     const CheckpointRecord& record) {
  return on_first_rank(world, [&] {
    std::vector<DatasetShape> shapes;
    for (const PlannedDataset& dataset : plan.datasets) shapes.push_back(dataset.shape);
    return create_checkpoint_file(file, shapes, record);
  });
}

/// Returns the default: each rank writes its own data.
std::vector<std::size_t> every_rank(std::size_t ranks) {
  std::vector<std::size_t> writer_of(ranks);
  std::iota(writer_of.begin(), writer_of.end(), std::size_t{0});
  return writer_of;
}

/// Creates a file with a unique name, and returns the name.
std::string make_probe(const fs::path& directory) {
  const std::string name = probe_prefix + unique_key();
  PositionedFile(directory / name, PositionedFile::Use::create).sync_and_close();
  return name;
}

void find_probe(const fs::path& directory, const std::string& name) {
  if (::access((directory / name).c_str(), F_OK) == 0) return;
  fail(
      fmt::format("{} on {} is not the directory that rank 0 writes to: checkpoints need a directory that all nodes "
                  "share; choose such an {}",
                  directory.string(), host_name(), setting("output")));
}

/// The arguments that are the same for both files of a save.
struct Saving {
  Communicator& world;
  const CheckpointArrays& arrays;
  std::span<const std::size_t> writer_of;
  const std::function<void()>& check;
};

/// Writes one file under another name. Once it is on disk, rank 0 calls `publish`, which gives it its name. Returns the
/// warning that `publish` returns.
std::string write_file(const Saving& saving, FileKind kind, const fs::path& file, const CheckpointRecord& record,
                       const std::function<std::string(const fs::path& unfinished)>& publish) {
  Communicator& world = saving.world;
  const fs::path unfinished = on_first_rank(world, [&] { return unfinished_name(file); });
  PlannedFile plan = plan_file(saving.arrays, kind, world.size());
  try {
    plan.slots = create_file(world, unfinished, plan, record);
    ValuesWriter writer(world, unfinished, saving.arrays, plan, saving.writer_of);
    writer.write();
    on_every_rank(world, [&] {
      const FileWork flushing;
      writer.finish();
    });
    return on_first_rank(world, [&] {
      if (saving.check) saving.check();
      return publish(unfinished);
    });
  } catch (...) {
    std::error_code ignored;  // the next start removes the file
    if (world.rank() == 0) fs::remove(unfinished, ignored);
    throw;
  }
}

/// Writes the values of frozen tensors unless the directory has them, and names their file in the checkpoint's record.
/// Returns the bytes that were written.
std::size_t save_frozen(const Saving& saving, const fs::path& directory, std::size_t step, CheckpointRecord& record) {
  const std::size_t bytes = checkpoint_bytes(saving.arrays).frozen;
  if (bytes == 0) return 0;
  FrozenFile& frozen = *saving.arrays.frozen;
  const fs::path file = on_first_rank(saving.world, [&] {
    if (holds_frozen(directory, frozen)) return fs::path();
    forget_whole();  // checkpoints that name a file that was lost are no longer whole
    return new_frozen_file(directory, step);
  });
  if (!file.empty()) {
    write_file(saving, FileKind::frozen, file, {}, [&](const fs::path& unfinished) {
      publish_file(unfinished, file);
      frozen = identify_frozen(file);
      return std::string();
    });
  }
  record_frozen(record, frozen);
  return file.empty() ? 0 : bytes;
}

}  // namespace

CheckpointBytes checkpoint_bytes(const CheckpointArrays& arrays) {
  return {bytes_of(datasets_of(arrays, FileKind::checkpoint)), bytes_of(datasets_of(arrays, FileKind::frozen))};
}

void prepare_checkpoints(Communicator& world, const fs::path& directory, const CheckpointBytes& bytes,
                         std::size_t kept) {
  const std::string probe = on_first_rank(world, [&] {
    clear_unfinished(directory);
    check_checkpoint_space(directory, bytes, kept);
    return make_probe(directory);
  });
  std::error_code ignored;  // an empty file that is left behind does no harm
  try {
    on_every_rank(world, [&] {
      const FileWork looking;
      find_probe(directory, probe);
    });
  } catch (...) {
    if (world.rank() == 0) fs::remove(directory / probe, ignored);
    throw;
  }
  if (world.rank() == 0) fs::remove(directory / probe, ignored);
}

SaveReport save_checkpoint(Communicator& world, const fs::path& directory, std::size_t step,
                           const CheckpointArrays& arrays, const CheckpointRecord& record, std::size_t keep,
                           std::span<const std::size_t> writer_of, const std::function<void()>& check) {
  require(keep > 0, "checkpoints: keep at least one");
  const std::vector<std::size_t> own = every_rank(world.size());
  if (writer_of.empty()) writer_of = own;
  require(writer_of.size() == world.size() && writer_of[0] == 0,
          "checkpoints: rank 0 is a writer, and each rank has one");
  const Stopwatch watch;
  Kokkos::fence("mylos::Checkpoint::save");
  const Saving saving{world, arrays, writer_of, check};
  CheckpointRecord complete = record;
  const std::size_t bytes = checkpoint_bytes(arrays).each + save_frozen(saving, directory, step, complete);
  const fs::path file = directory / checkpoint_file_name(step);
  const std::string warning = write_file(saving, FileKind::checkpoint, file, complete, [&](const fs::path& unfinished) {
    return publish_checkpoint(unfinished, directory, step, keep);
  });
  return {file, bytes, watch.seconds(), warning};
}

}  // namespace mylos::parallel
