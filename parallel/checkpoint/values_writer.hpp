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

/// Writes the arrays of a checkpoint into its file by a few ranks, to which the others send what they save.
namespace mylos::parallel {

/// The datasets of a file, the ranges of each, and where each lies in the file.
struct PlannedFile {
  std::vector<PlannedDataset> datasets;
  std::vector<std::vector<WrittenRange>> ranges;
  std::vector<DatasetSlot> slots;
};

/// Holds one chunk of values on a writer, and on every rank of a device build one on its way to the host.
class ValuesWriter {
 public:
  /// `writer_of` as choose_writers gives it. Writers open `file`, which is there. Arguments outlive this. Collective.
  /// Errors: std::runtime_error on every rank.
  ValuesWriter(Communicator& world, const std::filesystem::path& file, const CheckpointArrays& arrays,
               const PlannedFile& plan, std::span<const std::size_t> writer_of);

  /// Writes all values, and by rank 0 their checksums. Where a rank has an error, it goes on to take part in what the
  /// others wait for; all ranks stop at the same chunk. Collective.
  void write();
  /// Returns when what this rank wrote is on the disk. Errors: the first of this rank, of write() too. Not collective.
  void finish();

 private:
  using Checksums = std::vector<std::uint32_t>;

  bool is_writer() const { return writer_of_[world_.rank()] == world_.rank(); }
  template <class Work>
  void attempt(const Work& work);
  /// Whether no rank has an error. Collective.
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
  std::optional<PositionedFile> file_;          ///< of a writer
  HostPiece piece_{chunk_elements};             ///< what this rank has of a chunk
  std::vector<float> received_;                 ///< a chunk of which other ranks have parts
  std::map<std::size_t, Checksums> checksums_;  ///< of each writer's ranges, in order: this rank's, on rank 0 all
  std::exception_ptr failure_;                  ///< the first one
};

}  // namespace mylos::parallel
