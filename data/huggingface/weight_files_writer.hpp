#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "data/huggingface/safetensors.hpp"
#include "data/huggingface/weight_files.hpp"

/// Writes the safetensors file or files of a directory as Hugging Face's libraries do.
namespace mylos::data {

/// Element type, shard size and file names of the written weights.
struct WeightFormat {
  static constexpr std::uint64_t default_shard_bytes = 5'000'000'000;  ///< "5GB" in transformers

  Precision precision = Precision::float32;
  /// Larger weights are written as several files of at most this size: model-00001-of-0000N.safetensors, ..., and
  /// model.safetensors.index.json. A tensor that exceeds it gets a file of its own.
  std::uint64_t shard_bytes = default_shard_bytes;
  DirectoryNames names = {};
};

/// Returns the number of consecutive tensors in each file: a single file if all fit into format.shard_bytes.
std::vector<std::size_t> divide_into_shards(std::span<const TensorShape> tensors, const WeightFormat& format);

/// One of several processes that write the files of one directory side by side: file f is that of writer
/// f % writers.
struct WriterPart {
  std::size_t writer = 0;
  std::size_t writers = 1;
};

/// Writes model.safetensors, or shards and their index, to a directory, one file after the other.
class WeightFilesWriter {
 public:
  /// Throws std::invalid_argument if a tensor's name appears twice or there are more writers than files, and
  /// std::runtime_error with the file.
  WeightFilesWriter(std::filesystem::path directory, std::span<const TensorShape> tensors, const WeightFormat& format,
                    const WriterPart& part = {});
  /// Appends any number of values. The tensors of this writer's files follow each other in order.
  void write(std::span<const float> values);
  /// Completes this writer's files; the first writer also writes the index. Throws std::invalid_argument unless exactly
  /// as many values were written as the tensors have.
  void commit();
  /// Throws std::runtime_error with the first file of any writer that is not in the directory.
  void check_files() const;

 private:
  std::filesystem::path path_of(std::size_t shard) const;
  void begin_shard();
  bool is_last_shard() const { return shard_ + part_.writers >= counts_.size(); }
  void write_index() const;

  std::filesystem::path directory_;
  std::vector<TensorShape> tensors_;
  WeightFormat format_;
  std::vector<std::size_t> counts_;  ///< tensors per shard
  WriterPart part_;
  std::size_t shard_;     ///< shard being written
  std::size_t left_ = 0;  ///< elements still missing in that shard
  std::optional<SafetensorsWriter> file_;
};

}  // namespace mylos::data
