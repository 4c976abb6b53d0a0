#pragma once

#include "parallel/checkpoint/checkpoint_layout.hpp"
#include "parallel/checkpoint/host_piece.hpp"

#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <vector>

/// Writes the arrays of a checkpoint to its file. A few ranks write; the others send them their data.
namespace mylos::parallel {

/// The datasets of a file, with their ranges and slots.
struct PlannedFile {
  std::vector<PlannedDataset> datasets;
  std::vector<std::vector<WrittenRange>> ranges;
  std::vector<DatasetSlot> slots;
};

/// Writes all values and checksums. Needs memory for one chunk on each writer, and in a device build for one chunk on
/// each rank, to copy it to the host.
class ValuesWriter {
 public:
  /// `writer_of`: see choose_writers. Writers open `file`, which must exist. All arguments must outlive this object.
  /// Collective. Errors: std::runtime_error on every rank.
  ValuesWriter(Communicator& world, const std::filesystem::path& file, const CheckpointArrays& arrays,
               const PlannedFile& plan, std::span<const std::size_t> writer_of);

  /// Writes all values, and on rank 0 the checksums. A rank with an error continues to take part in the exchanges that
  /// others wait for; all ranks stop at the same chunk. Collective.
  void write();
  /// Returns when the data written by this rank is on disk. Errors: throws this rank's first error, including those of
  /// write(). Not collective.
  void finish();

 private:
  using Checksums = std::vector<std::uint32_t>;

  bool is_writer() const { return writer_of_[world_.rank()] == world_.rank(); }
  template <class Work>
  void attempt(const Work& work);
  /// Returns true if no rank has an error. Collective.
  bool all_well();

  template <class Use>
  void for_each_chunk(const Use& use) const;
  std::size_t received_elements() const;
  void write_chunk(const PlannedDataset& dataset, const WrittenChunk& chunk, std::uint64_t slot);
  std::span<const float> gather_chunk(const PlannedDataset& dataset, const WrittenChunk& chunk);
  void write_values(const WrittenChunk& chunk, std::span<const float> values, std::uint64_t slot);
  void write_tables();
  void gather_checksums();
  Vector<float> part_of(const PlannedDataset& dataset, std::size_t begin, std::size_t end) const;

  Communicator& world_;
  const CheckpointArrays& arrays_;
  const PlannedFile& plan_;
  std::span<const std::size_t> writer_of_;
  std::optional<PositionedFile> file_;          ///< set on writers only
  HostPiece piece_{chunk_elements};             ///< this rank's part of a chunk
  std::vector<float> received_;                 ///< a chunk with parts of other ranks
  std::map<std::size_t, Checksums> checksums_;  ///< by writer, in range order; rank 0 has all, others their own
  std::exception_ptr failure_;                  ///< the first error
};

}  // namespace mylos::parallel
