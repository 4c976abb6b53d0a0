#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/checkpoint/checkpoint_layout.hpp"
#include "parallel/checkpoint/host_piece.hpp"
#include "parallel/communicator/file_work.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

namespace mylos::parallel {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t ranges_at_once = 4;  // written with one call: 4 MiB

struct PlannedFile {
  std::vector<PlannedDataset> datasets;
  std::vector<std::vector<WrittenRange>> ranges;  ///< of each dataset
};

PlannedFile plan_file(const CheckpointArrays& arrays, std::size_t ranks) {
  PlannedFile plan{plan_datasets(arrays), {}};
  for (PlannedDataset& dataset : plan.datasets) {
    plan.ranges.push_back(written_ranges(arrays, dataset, ranks));
    dataset.shape.ranges = plan.ranges.back().size();
  }
  return plan;
}

/// What lies in memory as bytes of a text.
std::string to_bytes(const std::vector<DatasetPlace>& places) {
  return {reinterpret_cast<const char*>(places.data()), places.size() * sizeof(DatasetPlace)};
}

std::vector<DatasetPlace> to_places(const std::string& bytes, std::size_t count) {
  require(bytes.size() == count * sizeof(DatasetPlace), "checkpoint: places of another file");
  std::vector<DatasetPlace> places(count);
  std::memcpy(places.data(), bytes.data(), bytes.size());
  return places;
}

/// Rank 0's file, and where each dataset lies in it.
std::vector<DatasetPlace> create_file(Communicator& world, const fs::path& file, const PlannedFile& plan,
                                      const CheckpointRecord& record) {
  const std::string bytes = on_first_rank(world, [&] {
    std::error_code ignored;  // what a failed save left; where it cannot be removed, making the file tells
    fs::remove(file, ignored);
    std::vector<DatasetShape> shapes;
    for (const PlannedDataset& dataset : plan.datasets) shapes.push_back(dataset.shape);
    return to_bytes(create_checkpoint_file(file, shapes, record));
  });
  return to_places(bytes, plan.datasets.size());
}

/// Writes what this rank owns of one file.
class RankWriter {
 public:
  RankWriter(const fs::path& file, const CheckpointArrays& arrays, std::size_t rank)
      : file_(file, PositionedFile::Use::write), arrays_(arrays), rank_(rank) {}

  void write(const PlannedDataset& dataset, std::span<const WrittenRange> ranges, const DatasetPlace& place) {
    const auto is_mine = [this](const WrittenRange& range) { return range.writer == rank_; };
    // A rank's ranges of a row are neighbours.
    const auto first = std::ranges::find_if(ranges, is_mine);
    const auto last = std::find_if_not(first, ranges.end(), is_mine);
    if (first == last) return;
    std::vector<std::byte> checksums;
    for (auto range = first; range != last;) {
      const auto end = range + std::min<std::ptrdiff_t>(ranges_at_once, last - range);
      write_piece(dataset, {range, end}, place.values, checksums);
      range = end;
    }
    const auto index = static_cast<std::uint64_t>(first - ranges.begin());
    file_.write(place.checksums + index * checksum_row_bytes, checksums);
  }
  void finish() { file_.sync_and_close(); }

 private:
  void write_piece(const PlannedDataset& dataset, std::span<const WrittenRange> ranges, std::uint64_t place,
                   std::vector<std::byte>& checksums) {
    const std::size_t begin = ranges.front().first, end = ranges.back().first + ranges.back().count;
    const std::span<const float> values = piece_.read(part_of(dataset, begin, end));
    for (const WrittenRange& range : ranges) {
      const auto part = values.subspan(range.first - begin, range.count);
      const ChecksumRange row{range.first, range.count, crc32c(std::as_bytes(part))};
      checksums.resize(checksums.size() + checksum_row_bytes);
      pack_checksum_row(row, std::span(checksums).last<checksum_row_bytes>());
    }
    const std::uint64_t offset = place + begin * sizeof(float);
    file_.write(offset, std::as_bytes(values));
    file_.begin_flush(offset, values.size_bytes());
  }

  Vector<float> part_of(const PlannedDataset& dataset, std::size_t begin, std::size_t end) const {
    for (const HeldPart& part : held_parts(arrays_, dataset)) {
      if (part.begin <= begin && end <= part.end) return slice(part.values, begin - part.begin, end - part.begin);
    }
    require(false, fmt::format("checkpoint: rank {} is to write elements {} to {} of {}, which it does not hold", rank_,
                               begin, end, dataset.shape.name));
    return {};
  }

  PositionedFile file_;
  const CheckpointArrays& arrays_;
  std::size_t rank_;
  HostPiece piece_{ranges_at_once * checksum_elements};
};

/// Makes a file with a random name and returns that.
std::string make_probe(const fs::path& directory) {
  std::random_device random;
  const std::string name = fmt::format(".probe-{:08x}{:08x}", random(), random());
  PositionedFile(directory / name, PositionedFile::Use::create).sync_and_close();
  return name;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "a host without a name";
}

void find_probe(const fs::path& directory, const std::string& name) {
  if (::access((directory / name).c_str(), F_OK) == 0) return;
  fail(
      fmt::format("{} on {} is not the directory that rank 0 writes to: checkpoints need one that all nodes share; "
                  "choose an --output there",
                  directory.string(), host_name()));
}

}  // namespace

std::size_t checkpoint_bytes(const CheckpointArrays& arrays) {
  std::size_t elements = 0;
  for (const PlannedDataset& dataset : plan_datasets(arrays)) elements += dataset.row->size;
  return elements * sizeof(float);
}

void prepare_checkpoints(Communicator& world, const fs::path& directory, std::size_t bytes, std::size_t kept) {
  const std::string probe = on_first_rank(world, [&] {
    clear_unfinished(directory);
    check_checkpoint_space(directory, bytes, kept);
    return make_probe(directory);
  });
  std::error_code ignored;  // an empty file that stays harms nobody
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
                           const CheckpointArrays& arrays, const CheckpointRecord& record, std::size_t keep) {
  require(keep > 0, "checkpoints: keep at least one");
  const Clock::time_point begin = Clock::now();
  const fs::path file = directory / checkpoint_file_name(step), unfinished = unfinished_name(file);
  const PlannedFile plan = plan_file(arrays, world.size());
  Kokkos::fence("mylos::Checkpoint::save");
  try {
    const std::vector<DatasetPlace> places = create_file(world, unfinished, plan, record);
    on_every_rank(world, [&] {
      const FileWork saving;
      RankWriter writer(unfinished, arrays, world.rank());
      for (std::size_t i = 0; i < places.size(); ++i) writer.write(plan.datasets[i], plan.ranges[i], places[i]);
      writer.finish();
    });
    on_first_rank(world, [&] {
      publish_checkpoint(directory, step, keep);
      return std::string();
    });
  } catch (...) {
    std::error_code ignored;  // the next start removes it
    if (world.rank() == 0) fs::remove(unfinished, ignored);
    throw;
  }
  return {file, checkpoint_bytes(arrays), std::chrono::duration<double>(Clock::now() - begin).count()};
}

}  // namespace mylos::parallel
