#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/quantities.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/checkpoint/checkpoint_layout.hpp"
#include "parallel/checkpoint/host_piece.hpp"
#include "parallel/checkpoint/whole_checkpoints.hpp"
#include "parallel/communicator/file_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace mylos::parallel {
namespace {

namespace fs = std::filesystem;

/// Returns the dataset in the file that matches the planned one.
const CheckpointDataset& matching(const CheckpointIndex& index, const PlannedDataset& planned, const fs::path& file) {
  const DatasetShape& shape = planned.shape;
  const CheckpointDataset* found = index.find(shape.name);
  if (found == nullptr) {
    fail(fmt::format("{}: has no {}, which this run's model and optimizer need", file.string(), shape.name));
  }
  ensure(found->shape == shape.shape,
         fmt::format("{}: {} has shape {}, but {} in this run: it is a checkpoint of another model", file.string(),
                     shape.name, shape_text(found->shape), shape_text(shape.shape)));
  return *found;
}

/// The file of a dataset, where it begins there, and the ranges of its values that have checksums.
struct SavedRanges {
  std::string file = {};
  std::uint64_t offset = 0;
  std::vector<ChecksumRange> ranges = {};
};
auto members(SavedRanges& saved) {
  auto& [file, offset, ranges] = saved;  // does not compile if one is forgotten
  return std::tie(file, offset, ranges);
}

/// Finds the planned datasets, in their order, in the file. Errors: one is missing, or there are others.
std::vector<SavedRanges> find_datasets(const std::vector<PlannedDataset>& planned, const CheckpointIndex& index,
                                       const fs::path& file) {
  std::set<std::string_view> wanted;
  std::vector<SavedRanges> saved;
  for (const PlannedDataset& dataset : planned) {
    const CheckpointDataset& found = matching(index, dataset, file);
    wanted.insert(found.name);
    saved.push_back({found.file->path().string(), found.offset, found.ranges});
  }
  for (const CheckpointDataset& dataset : index.datasets) {
    ensure(
        wanted.contains(dataset.name),
        fmt::format("{}: has {}, which this run's model and optimizer do not have: it is a checkpoint of another model",
                    file.string(), dataset.name));
  }
  return saved;
}

/// Opens the files.
std::vector<CheckpointDataset> to_datasets(const std::vector<PlannedDataset>& planned,
                                           const std::vector<SavedRanges>& saved) {
  std::map<std::string, std::shared_ptr<const PositionedFile>> files;
  std::vector<CheckpointDataset> datasets;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const PlannedDataset& dataset = planned[i];
    std::shared_ptr<const PositionedFile>& file = files[saved[i].file];
    if (!file) file = std::make_shared<PositionedFile>(saved[i].file, PositionedFile::Use::read);
    datasets.push_back(
        {dataset.shape.name, dataset.shape.shape, dataset.tensor->size, saved[i].offset, saved[i].ranges, file});
  }
  return datasets;
}

/// The part of a checksum range in the file whose values this rank holds.
struct HeldPiece {
  const CheckpointDataset& dataset;
  const ChecksumRange& range;
  std::size_t begin;  ///< begin in the range
  Vector<float> values;
  Communicator* holders;  ///< ranks that hold the same values; null if there are no others
  std::size_t reader;     ///< the one of them that reads the values
};

/// Assigns pieces that several ranks hold to these ranks in turn.
class Turns {
 public:
  explicit Turns(Communicator* holders) : holders_(holders) {}

  void add(const CheckpointDataset& dataset, const HeldPart& part, std::vector<HeldPiece>& pieces) {
    for (const ChecksumRange& range : dataset.ranges) {
      const std::size_t begin = std::max<std::size_t>(part.begin, range.first);
      const std::size_t end = std::min<std::size_t>(part.end, range.first + range.count);
      if (begin >= end) continue;
      pieces.push_back({dataset, range, begin - range.first, slice(part.values, begin - part.begin, end - part.begin),
                        holders_, holders_ == nullptr ? 0 : next_++ % holders_->size()});
    }
  }

 private:
  Communicator* holders_;
  std::size_t next_ = 0;
};

std::vector<HeldPiece> held_pieces(Communicator& world, const CheckpointArrays& arrays,
                                   const std::vector<PlannedDataset>& planned,
                                   const std::vector<CheckpointDataset>& datasets) {
  Turns parameters(arrays.copies), states(&world);
  std::vector<HeldPiece> pieces;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    Turns& turns = planned[i].group ? parameters : states;
    for (const HeldPart& part : held_parts(arrays, planned[i])) turns.add(datasets[i], part, pieces);
  }
  return pieces;
}

/// Reads the pieces that are assigned to this rank.
void read_pieces(const std::vector<HeldPiece>& pieces) {
  std::vector<float> buffer(checksum_elements);
  for (const HeldPiece& piece : pieces) {
    if (piece.holders != nullptr && piece.holders->rank() != piece.reader) continue;
    const std::span<float> values = std::span(buffer).first(piece.range.count);
    read_range(piece.dataset, piece.range, values);
    HostPiece::write(values.subspan(piece.begin, piece.values.size()), piece.values);
  }
}

void pass_on(const std::vector<HeldPiece>& pieces) {
  const ExecutionSpace space;
  for (const HeldPiece& piece : pieces) {
    if (piece.holders == nullptr) continue;
    piece.holders->broadcast(space, buffer_of(piece.values), piece.reader, "values of a checkpoint").wait(space);
  }
}

/// Returns the checkpoints of earlier steps in the directory of `file`; empty if `file` is not among those listed
/// there.
std::vector<CheckpointEntry> checkpoints_before(const fs::path& file) {
  std::vector<CheckpointEntry> entries = list_checkpoints(file.parent_path());
  const auto is_it = [&](const CheckpointEntry& entry) { return entry.file.filename() == file.filename(); };
  const auto found = std::ranges::find_if(entries, is_it);
  if (found == entries.end()) return {};
  entries.erase(found, entries.end());
  return entries;
}

/// Names the last intact checkpoint before a damaged one. Empty if `file` is not damaged or is the first one.
std::string advice_for(const fs::path& file) {
  const std::vector<CheckpointEntry> before = checkpoints_before(file);
  if (before.empty()) return "";
  forget_whole(file);
  if (is_whole(file)) return "";
  const auto has_all = [](const CheckpointEntry& entry) { return is_whole(entry.file); };
  const auto whole = std::find_if(before.rbegin(), before.rend(), has_all);
  if (whole == before.rend()) return "; no earlier checkpoint is intact";
  return fmt::format("; the earlier {} is intact: {} continues from it", whole->file.filename().string(),
                     setting("resume", whole->file.string()));
}

/// Returns the result of `work`. If it fails, the error also says what to do about a damaged `file`.
template <class Work>
auto resuming_from(Communicator& world, const fs::path& file, const Work& work) {
  try {
    return work();
  } catch (const SharedError& error) {
    const std::string advice = on_first_rank(world, [&] {
      try {
        return advice_for(file);
      } catch (const std::runtime_error&) {  // the directory cannot be listed: the first error counts
        return std::string();
      }
    });
    throw SharedError(error.what() + advice);
  }
}

void load_values(Communicator& world, const fs::path& file, const CheckpointArrays& arrays) {
  const std::vector<PlannedDataset> planned = plan_datasets(arrays);
  const std::vector<SavedRanges> saved = on_first_rank(world, [&] {
    const CheckpointIndex index = read_checkpoint_index(file);
    if (arrays.frozen != nullptr) *arrays.frozen = recorded_frozen(index.record, file);
    return find_datasets(planned, index, file);
  });
  std::vector<CheckpointDataset> datasets;
  on_every_rank(world, [&] {
    const FileWork opening;
    datasets = to_datasets(planned, saved);
  });
  const std::vector<HeldPiece> pieces = held_pieces(world, arrays, planned, datasets);
  on_every_rank(world, [&] {
    const FileWork loading;
    read_pieces(pieces);
    Kokkos::fence("mylos::Checkpoint::load");
  });
  pass_on(pieces);
  Kokkos::fence("mylos::Checkpoint::load");
}

}  // namespace

fs::path find_checkpoint(Communicator& world, const fs::path& path) {
  return on_first_rank(world, [&] { return resolve_checkpoint(path); });
}

CheckpointRecord read_checkpoint_record(Communicator& world, const fs::path& file) {
  return resuming_from(world, file,
                       [&] { return on_first_rank(world, [&] { return read_checkpoint_index(file).record; }); });
}

void load_checkpoint(Communicator& world, const fs::path& file, const CheckpointArrays& arrays) {
  resuming_from(world, file, [&] { load_values(world, file, arrays); });
  if (world.rank() == 0) note_whole(file);
}

}  // namespace mylos::parallel
