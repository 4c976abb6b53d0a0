#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "data/huggingface/safetensors.hpp"

/// The safetensors file or files of a model directory, as Hugging Face's libraries write them.
namespace mylos::data {

/// How a model's weights are written.
struct WeightFormat {
  static constexpr std::uint64_t default_shard_bytes = 5'000'000'000;  ///< what transformers calls 5GB

  Precision precision = Precision::float32;
  /// Weights of more bytes than this are written in several files of at most as many, a larger tensor in one of its
  /// own: model-00001-of-0000N.safetensors, ..., and model.safetensors.index.json.
  std::uint64_t shard_bytes = default_shard_bytes;
};

/// How many of `tensors`, in their order, each file holds: one file where all have at most format.shard_bytes.
std::vector<std::size_t> divide_into_shards(std::span<const TensorShape> tensors, const WeightFormat& format);

/// Writes model.safetensors, or shards and their index, into a directory, one file after the other.
class WeightFilesWriter {
 public:
  /// Errors: std::invalid_argument where a tensor's name comes twice; std::runtime_error naming the file.
  WeightFilesWriter(std::filesystem::path directory, std::span<const TensorShape> tensors, const WeightFormat& format);
  /// The next values, any number of them: those of a tensor follow those of the one before it.
  void write(std::span<const float> values);
  /// Errors: std::invalid_argument where there were more or fewer values than the tensors have.
  void commit();

 private:
  std::filesystem::path path_of(std::size_t shard) const;
  void begin_shard();
  void write_index() const;

  std::filesystem::path directory_;
  std::vector<TensorShape> tensors_;
  WeightFormat format_;
  std::vector<std::size_t> counts_;  ///< of the tensors in each shard
  std::size_t shard_ = 0;            ///< under way
  std::size_t first_ = 0;            ///< its first tensor
  std::size_t left_ = 0;             ///< elements that it still lacks
  std::optional<SafetensorsWriter> file_;
};

}  // namespace mylos::data
