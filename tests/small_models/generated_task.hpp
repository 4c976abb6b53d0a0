#pragma once

#include "train/engine/sampler.hpp"
#include "train/engine/task.hpp"

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

/// Common base of tasks with generated samples: shuffled epochs, and a model that is exported, with its state tensors,
/// as one safetensors file from which a later task of the same kind can start.
namespace mylos::small_models {

/// Computes validation_loss and accuracy per counted item: image or word.
class GeneratedEvaluation : public train::Evaluation {
 public:
  void take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) final;
  train::Metrics score() final;
  std::span<const train::MetricKind> kinds() const final;
  /// Returns the metrics of the last score.
  const train::Metrics& metrics() const { return metrics_; }

 protected:
  virtual double correct(std::size_t index, std::span<const float> outputs) const = 0;
  virtual double weight() const = 0;

 private:
  double loss_ = 0.0, correct_ = 0.0;  ///< over the batches since the first one
  train::Metrics metrics_;
};

/// Exports all parameter and state tensors of `table`, which must outlive it, as model.safetensors.
class SafetensorsExporter final : public train::ModelExporter {
 public:
  explicit SafetensorsExporter(const ParameterTable& table) : table_(table) {}

  std::vector<std::size_t> files() const override { return {table_.tensors().size() + table_.state_tensors().size()}; }
  std::unique_ptr<train::ModelExport> start(const std::filesystem::path& directory,
                                            const train::ExportPart& part) const override;

 private:
  const ParameterTable& table_;
};

class GeneratedTask : public train::Task {
 public:
  const nn::Model& model() const override { return *model_; }
  void initial_values(const train::TensorWriter& write) const override;

  std::size_t steps_per_epoch() const override { return sampler_.steps_per_epoch(); }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return sampler_.batch(step); }

  train::Evaluation* evaluation() const override { return evaluation_.get(); }
  /// Writes scores.json with the metrics of the last evaluation.
  void write_results(const std::filesystem::path& directory) const override;
  /// Exports model.safetensors.
  const train::ModelExporter* exporter() const override { return &exporter_; }

 protected:
  /// Draws batches of `batch` samples out of `samples`. `start` is an exported directory to start from; empty =
  /// initialisers.
  GeneratedTask(std::unique_ptr<nn::Model> model, std::size_t samples, std::size_t batch, std::uint64_t seed,
                std::filesystem::path start);

  std::unique_ptr<GeneratedEvaluation> evaluation_;  ///< null unless the task creates one

 private:
  std::unique_ptr<nn::Model> model_;
  SafetensorsExporter exporter_;
  train::EpochSampler sampler_;
  std::filesystem::path start_;
};

}  // namespace mylos::small_models
