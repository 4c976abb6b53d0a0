#pragma once

#include "train/engine/sampler.hpp"
#include "train/engine/task.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

/// A task of which only the lengths of its samples are known: for plans, which compute nothing.
namespace mylos::train {

class LengthTask final : public Task {
 public:
  /// Sample i has lengths[i] rows; steps take `batch` of them, shuffled by `seed` as every run shuffles. The model
  /// outlives it. Errors: std::invalid_argument where there is no sample.
  LengthTask(const nn::Model& model, std::vector<std::size_t> lengths, std::size_t batch, std::uint64_t seed);

  const nn::Model& model() const override { return model_; }
  std::size_t steps_per_epoch() const override { return sampler_.steps_per_epoch(); }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return sampler_.batch(step); }
  std::size_t rows_of(std::size_t sample) const override { return lengths_[sample]; }
  double weight(std::span<const std::size_t> samples) const override { return static_cast<double>(samples.size()); }
  Evaluation* evaluation() const override { return nullptr; }

  // What a run calls, and a plan does not: std::logic_error.
  void initial_values(const RowWriter& write) const override;
  void assemble(std::span<const std::size_t> samples, std::span<const std::uint32_t> ids, Batch& batch) const override;
  void write_results(const std::filesystem::path& directory) const override;
  std::unique_ptr<ModelExport> start_export(const std::filesystem::path& directory) const override;

 private:
  const nn::Model& model_;
  std::vector<std::size_t> lengths_;
  EpochSampler sampler_;
};

}  // namespace mylos::train
