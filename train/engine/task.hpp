#pragma once

#include "core/batch.hpp"
#include "nn/model.hpp"
#include "train/engine/metrics.hpp"
#include "train/engine/sample_stream.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// The seam between the engine and what is learned: a task brings the model, the samples and the scores. The trainer,
/// parameter modes, memory plan and optimizers know nothing else; and a task knows nothing of ranks.
namespace mylos::train {

/// What a model is scored by: samples to predict, in batches that any rank may compute.
class Evaluation {
 public:
  virtual ~Evaluation() = default;

  /// There is at least one.
  virtual std::size_t batches() const = 0;
  /// What no batch exceeds.
  virtual BatchShape largest_batch() const = 0;
  /// Makes batch `index`: a function of the index alone.
  virtual void assemble(std::size_t index, Batch& batch) const = 0;
  /// Takes the model's outputs for batch `index` (row-major, as Model::predict says) and the loss of each of its
  /// samples: all batches of an evaluation, in order. On the first rank only.
  virtual void take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) = 0;
  /// Returns the metrics of the batches that were taken, in the order of kinds(). Leaves out a metric that the samples
  /// do not allow.
  virtual Metrics score() = 0;
  /// Describes the metrics. The first one is the loss, which `--best-by loss` uses.
  virtual std::span<const MetricKind> kinds() const = 0;
  /// Bytes that scoring and writing what was scored take at the most, on the first rank.
  virtual std::size_t kept_bytes() const { return 0; }
};

/// Writes a model for other programs, into a directory that is replaced whole when it is complete.
class ModelExport {
 public:
  virtual ~ModelExport() = default;
  /// Takes values of `row` from its element `first` on: all rows of the table in its order and then its state rows,
  /// each from its first element to its last.
  virtual void write(const ParameterRow& row, std::size_t first, std::span<const float> values) = 0;
  /// After the last value. Without it nothing is replaced.
  virtual void commit() = 0;
};

/// Takes the initial values of the row called `name`, parameters and state alike.
using RowWriter = std::function<void(const std::string& name, std::span<const float> values)>;

class Task : public SampleStream {
 public:
  virtual const nn::Model& model() const = 0;
  /// Gives `write` the rows whose values are known, from pretrained weights; the others begin from their initialisers.
  virtual void initial_values(const RowWriter& write) const = 0;

  /// Makes the batch of these training samples of `step`; ids are their places in the global batch. Whatever changes a
  /// sample (augmentation) is a function of the seed, the step and the sample.
  virtual void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                        Batch& batch) const = 0;

  /// Null where there is nothing to evaluate.
  virtual Evaluation* evaluation() const = 0;
  /// Writes the last evaluation's answers and scores into `directory`, each file whole or not at all.
  virtual void write_results(const std::filesystem::path& directory) const = 0;
  /// The last evaluation's answers in short, as JSON that evaluations can be compared by; empty where it has none.
  virtual std::string short_answers() const { return {}; }
  /// Begins to write the model into `directory`. The task outlives the export.
  virtual std::unique_ptr<ModelExport> start_export(const std::filesystem::path& directory) const = 0;
};

}  // namespace mylos::train
