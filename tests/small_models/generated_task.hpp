#pragma once

#include "train/engine/samples/sampler.hpp"
#include "train/engine/task.hpp"

#include <filesystem>
#include <memory>
#include <span>

/// Common base of tasks with generated samples: shuffled epochs, an evaluation on samples after those of training, and
/// a model that is exported, with its state tensors, as one safetensors file from which a later task can start.
namespace mylos::small_models {

struct GeneratedSamples {
  std::size_t training = 0;
  std::size_t batch = 0;      ///< samples per step
  std::size_t evaluated = 0;  ///< samples that are not used for training; 0 = no evaluation
  std::uint64_t seed = 0;
  std::filesystem::path start = {};  ///< an exported directory to start from; empty = initialisers
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
  void initial_values(const FileReader& files, const train::TensorWriter& write) const override;

  std::size_t steps_per_epoch() const override { return sampler_.steps_per_epoch(); }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return sampler_.batch(step); }
  double weight(std::span<const std::size_t> samples) const override { return static_cast<double>(samples.size()); }
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;

  /// Computes validation_loss and accuracy per counted item: sequence, image or word.
  train::Evaluation* evaluation() const override { return evaluation_.get(); }
  /// Returns the metrics of the last evaluation as a JSON object.
  std::string scores() const;
  /// Writes scores.json.
  void write_results(const std::filesystem::path& directory) const override;
  const train::ModelExporter* exporter() const override { return &exporter_; }

 protected:
  GeneratedTask(std::unique_ptr<nn::Model> model, const GeneratedSamples& samples);

  /// Sets the arrays of these samples.
  virtual void fill(std::span<const std::size_t> samples, Batch& batch) const = 0;
  /// Returns how many of the items that `weight` counts the outputs predict.
  virtual double correct(std::span<const std::size_t> samples, std::span<const float> outputs) const = 0;

 private:
  class GeneratedEvaluation;

  std::unique_ptr<nn::Model> model_;
  SafetensorsExporter exporter_;
  train::EpochSampler sampler_;
  std::filesystem::path start_;
  std::unique_ptr<train::Evaluation> evaluation_;
  train::Metrics metrics_;  ///< of the last evaluation
};

/// Returns the numbers first, first + 1, ..., `count` of them.
std::vector<std::size_t> numbers_from(std::size_t first, std::size_t count);

}  // namespace mylos::small_models
