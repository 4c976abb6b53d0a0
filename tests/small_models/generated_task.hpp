#pragma once

#include "train/engine/sampler.hpp"
#include "train/engine/task.hpp"

#include <filesystem>
#include <memory>
#include <span>

/// What tasks over generated samples share: shuffled epochs, and a model that is exported as one safetensors file with
/// its state tensors, from which a later task of the kind begins.
namespace mylos::small_models {

/// Scores validation_loss and accuracy, each divided by what is counted: images, words.
class GeneratedEvaluation : public train::Evaluation {
 public:
  void take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) final;
  train::Metrics score() final;
  std::span<const train::MetricKind> kinds() const final;
  /// Of the last score.
  const train::Metrics& metrics() const { return metrics_; }

 protected:
  virtual double correct(std::size_t index, std::span<const float> outputs) const = 0;
  virtual double weight() const = 0;

 private:
  double loss_ = 0.0, correct_ = 0.0;  ///< of the batches taken since the first
  train::Metrics metrics_;
};

/// Writes the rows of `table`, parameters and state, into model.safetensors of `directory`.
std::unique_ptr<train::ModelExport> start_safetensors(const std::filesystem::path& directory,
                                                      const ParameterTable& table);

class GeneratedTask : public train::Task {
 public:
  const nn::Model& model() const override { return *model_; }
  void initial_values(const train::TensorWriter& write) const override;

  std::size_t steps_per_epoch() const override { return sampler_.steps_per_epoch(); }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return sampler_.batch(step); }

  train::Evaluation* evaluation() const override { return evaluation_.get(); }
  /// scores.json with the last evaluation's metrics.
  void write_results(const std::filesystem::path& directory) const override;
  /// model.safetensors.
  std::unique_ptr<train::ModelExport> start_export(const std::filesystem::path& directory) const override;

 protected:
  /// Batches of `batch` out of `samples`. `start`: an exported directory to begin from; empty = initialisers.
  GeneratedTask(std::unique_ptr<nn::Model> model, std::size_t samples, std::size_t batch, std::uint64_t seed,
                std::filesystem::path start);

  std::unique_ptr<GeneratedEvaluation> evaluation_;  ///< none, unless the task makes one

 private:
  std::unique_ptr<nn::Model> model_;
  train::EpochSampler sampler_;
  std::filesystem::path start_;
};

}  // namespace mylos::small_models
