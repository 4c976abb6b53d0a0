#pragma once

#include "train/sampler.hpp"
#include "train/task.hpp"

#include <filesystem>
#include <memory>

/// What tasks over generated samples share: shuffled epochs, and a model that is exported as one safetensors file with
/// its state rows, from which a later task of the kind begins.
namespace mylos::small_models {

class GeneratedTask : public train::Task {
 public:
  const nn::Model& model() const override { return *model_; }
  void initial_values(const train::RowWriter& write) const override;

  std::size_t steps_per_epoch() const override { return sampler_.steps_per_epoch(); }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return sampler_.batch(step); }

  BatchShape evaluation_shape() const override { return {}; }
  train::Metrics evaluate(train::Predictor&) override { return {}; }
  /// scores.json with the last evaluation's metrics.
  void write_results(const std::filesystem::path& directory) const override;
  /// model.safetensors.
  void export_model(const std::filesystem::path& directory, const train::RowReader& read_row) const override;

 protected:
  /// Batches of `batch` out of `samples`. `start`: an exported directory to begin from; empty = initialisers.
  GeneratedTask(std::unique_ptr<nn::Model> model, std::size_t samples, std::size_t batch, std::uint64_t seed,
                std::filesystem::path start);

  train::Metrics last_metrics_;

 private:
  std::unique_ptr<nn::Model> model_;
  train::EpochSampler sampler_;
  std::filesystem::path start_;
};

}  // namespace mylos::small_models
