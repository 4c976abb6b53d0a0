#include "parallel/checkpoint/values_writer.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "parallel/checkpoint/checkpoint_writers.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace mylos::parallel {
namespace {

constexpr std::size_t first_rank = 0;

/// Bytes per writer after which all ranks synchronise. Otherwise a rank that has sent all its data would wait for the
/// rest of the save, which may take longer than --collective-timeout.
constexpr std::size_t paced_bytes = std::size_t{256} << 20;

/// Calls `use(owner, begin, end)` for each run of elements of a chunk that one rank owns, in order.
template <class Use>
void for_each_owner(const WrittenChunk& chunk, const Use& use) {
  for (auto range = chunk.ranges.begin(); range != chunk.ranges.end();) {
    const std::size_t owner = range->owner;
    const auto end =
        std::find_if(range, chunk.ranges.end(), [owner](const WrittenRange& each) { return each.owner != owner; });
    const WrittenRange& last = *std::prev(end);
    use(owner, range->first, last.first + last.count);
    range = end;
  }
}

bool is_all_of(const WrittenChunk& chunk, std::size_t rank) {
  return std::ranges::all_of(chunk.ranges, [rank](const WrittenRange& range) { return range.owner == rank; });
}

}  // namespace

ValuesWriter::ValuesWriter(Communicator& world, const std::filesystem::path& file, const CheckpointArrays& arrays,
                           const PlannedFile& plan, std::span<const std::size_t> writer_of)
    : world_(world), arrays_(arrays), plan_(plan), writer_of_(writer_of) {
  on_every_rank(world, [&] {
    if (!is_writer()) return;
    const FileWork opening;
    file_.emplace(file, PositionedFile::Use::write);
    received_.resize(received_elements());
  });
}

template <class Work>
void ValuesWriter::attempt(const Work& work) {
  if (failure_) return;
  const FileWork writing;
  try {
    work();
  } catch (const std::exception&) {
    failure_ = std::current_exception();
  }
}

bool ValuesWriter::all_well() { return maximum(world_, failure_ ? 1 : 0) == 0; }

/// Calls `use(dataset index, chunk)` until it returns false.
template <class Use>
void ValuesWriter::for_each_chunk(const Use& use) const {
  for (std::size_t i = 0; i < plan_.datasets.size(); ++i) {
    for (const WrittenChunk& chunk : cut_into_chunks(plan_.ranges[i], writer_of_)) {
      if (!use(i, chunk)) return;
    }
  }
}

/// Returns the elements of the longest chunk that this rank writes and of which other ranks own parts.
std::size_t ValuesWriter::received_elements() const {
  std::size_t most = 0;
  for_each_chunk([&](std::size_t, const WrittenChunk& chunk) {
    const bool receives = chunk.writer == world_.rank() && !is_all_of(chunk, world_.rank());
    if (receives) most = std::max(most, chunk.count());
    return true;
  });
  return most;
}

void ValuesWriter::write() {
  const std::size_t pace = paced_bytes * count_writers(writer_of_);
  std::size_t bytes = 0;
  for_each_chunk([&](std::size_t dataset, const WrittenChunk& chunk) {
    write_chunk(plan_.datasets[dataset], chunk, plan_.slots[dataset].values);
    bytes += chunk.count() * sizeof(float);
    if (bytes < pace) return true;
    bytes = 0;
    return all_well();
  });
  if (all_well()) write_tables();
}

void ValuesWriter::finish() {
  if (failure_) std::rethrow_exception(failure_);
  if (file_) file_->sync_and_close();
}

void ValuesWriter::write_chunk(const PlannedDataset& dataset, const WrittenChunk& chunk, std::uint64_t slot) {
  const std::span<const float> values = gather_chunk(dataset, chunk);
  if (chunk.writer == world_.rank()) attempt([&] { write_values(chunk, values, slot); });
}

/// Returns the chunk's values on its writer; empty on other ranks.
std::span<const float> ValuesWriter::gather_chunk(const PlannedDataset& dataset, const WrittenChunk& chunk) {
  const std::size_t rank = world_.rank();
  const bool writes = chunk.writer == rank, is_alone = is_all_of(chunk, chunk.writer);
  if (is_alone && !writes) return {};
  if (is_alone) return piece_.read(part_of(dataset, chunk.first(), chunk.first() + chunk.count()));
  const std::span<float> gathered = std::span(received_).first(writes ? chunk.count() : 0);
  std::vector<Event> transfers;
  for_each_owner(chunk, [&](std::size_t owner, std::size_t begin, std::size_t end) {
    const std::size_t count = end - begin;
    const std::span<const float> mine = owner == rank ? piece_.read(part_of(dataset, begin, end)) : std::span<float>();
    const std::span<float> target = writes ? gathered.subspan(begin - chunk.first(), count) : std::span<float>();
    if (owner == chunk.writer) {
      std::ranges::copy(mine, target.begin());
      return;
    }
    float* const values = owner == rank ? const_cast<float*>(mine.data()) : target.data();  // a sender only reads
    const std::size_t taking_part = owner == rank || writes ? count : 0;
    transfers.push_back(world_.transfer({}, {values, taking_part, ElementType::float32, MemoryKind::host}, owner,
                                        chunk.writer, "values of a checkpoint"));
  });
  for (const Event& transfer : transfers) transfer.wait({});
  return gathered;
}

void ValuesWriter::write_values(const WrittenChunk& chunk, std::span<const float> values, std::uint64_t slot) {
  Checksums& checksums = checksums_[chunk.writer];
  for (const WrittenRange& range : chunk.ranges) {
    checksums.push_back(crc32c(std::as_bytes(values.subspan(range.first - chunk.first(), range.count))));
  }
  const std::uint64_t offset = slot + chunk.first() * sizeof(float);
  file_->write(offset, std::as_bytes(values));
  file_->begin_flush(offset, values.size_bytes());
}

/// Writes the checksum tables. One rank writes them all, because they are short and lie between the arrays.
void ValuesWriter::write_tables() {
  gather_checksums();
  if (world_.rank() != first_rank) return;
  attempt([&] {
    std::map<std::size_t, std::size_t> next;
    std::vector<std::vector<std::byte>> tables(plan_.datasets.size());
    for_each_chunk([&](std::size_t dataset, const WrittenChunk& chunk) {
      for (const WrittenRange& range : chunk.ranges) {
        std::vector<std::byte>& table = tables[dataset];
        table.resize(table.size() + checksum_row_bytes);
        pack_checksum_row({range.first, range.count, checksums_[chunk.writer][next[chunk.writer]++]},
                          std::span(table).last<checksum_row_bytes>());
      }
      return true;
    });
    for (std::size_t i = 0; i < tables.size(); ++i) file_->write(plan_.slots[i].checksums, tables[i]);
  });
}

void ValuesWriter::gather_checksums() {
  std::map<std::size_t, std::size_t> counts;
  for_each_chunk([&](std::size_t, const WrittenChunk& chunk) {
    counts[chunk.writer] += chunk.ranges.size();
    return true;
  });
  for (const auto& [writer, count] : counts) {
    if (writer == first_rank) continue;
    Checksums& checksums = checksums_[writer];
    if (world_.rank() == first_rank) checksums.resize(count);
    world_
        .transfer({}, {checksums.data(), checksums.size() * sizeof(std::uint32_t), ElementType::byte, MemoryKind::host},
                  writer, first_rank, "checksums of a checkpoint")
        .wait({});
  }
}

Vector<float> ValuesWriter::part_of(const PlannedDataset& dataset, std::size_t begin, std::size_t end) const {
  for (const HeldPart& part : held_parts(arrays_, dataset)) {
    if (part.begin <= begin && end <= part.end) return slice(part.values, begin - part.begin, end - part.begin);
  }
  require(false, fmt::format("checkpoint: rank {} is to write elements {} to {} of {}, which it does not hold",
                             world_.rank(), begin, end, dataset.shape.name));
  return {};
}

}  // namespace mylos::parallel
