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
#include <utility>
#include <vector>

/// The seam between the engine and what is learned: a task brings the model, the samples and the scores. The trainer,
/// sharding strategies, memory plan and optimizers know nothing else; and a task knows nothing of ranks.
namespace mylos::train {

/// What a model is scored by: samples to predict, in batches that any rank may compute.
class Evaluation {
 public:
  virtual ~Evaluation() = default;

  /// There is at least one.
  virtual std::size_t batches() const = 0;
  /// What no batch exceeds.
  virtual BatchShape largest_batch() const = 0;
  /// Says which batches this rank is about to ask for, in order: `first`, `first + stride`, ..., and after the last of
  /// these maybe the evaluation's last one. An evaluation that reads files can begin to.
  virtual void read_ahead(std::size_t /*first*/, std::size_t /*stride*/) const {}
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
  /// Takes values of `tensor` from its element `first` on: all tensors of the table in its order and then its state
  /// tensors, each from its first element to its last.
  virtual void write(const ParameterTensor& tensor, std::size_t first, std::span<const float> values) = 0;
  /// After the last value. Without it nothing is replaced.
  virtual void commit() = 0;
};

/// Gives the values of a tensor from its element `first` on.
using ValueReader = std::function<void(std::size_t first, std::span<float> values)>;

/// Takes the initial values of tensors, parameters and state alike, by their names. Of each it reads the elements that
/// it needs, in pieces, before the call returns: a task can leave a tensor of hundreds of megabytes in its file.
class TensorWriter {
 public:
  using Take = std::function<void(const std::string& name, const ValueReader& read)>;

  explicit TensorWriter(Take take) : take_(std::move(take)) {}

  void operator()(const std::string& name, const ValueReader& read) const { take_(name, read); }
  /// Values that are in memory, all of the tensor.
  void operator()(const std::string& name, std::span<const float> values) const;

 private:
  Take take_;
};

/// What a rank asks a task to assemble, from a step on.
struct ExpectedBatches {
  std::size_t first_step = 0, steps = 0;  ///< steps [first_step, steps)
  /// The samples of each micro-batch that this rank makes of a step, in order. May be called by any thread, and refers
  /// to nothing but the task.
  std::function<std::vector<std::vector<std::size_t>>(std::size_t step)> batches_of = {};
};

class Task : public SampleStream {
 public:
  virtual const nn::Model& model() const = 0;
  /// Gives `write` the tensors whose values are known, from pretrained weights; the others begin from their
  /// initialisers. The tensors, and the errors found before a value is read, are the same whatever `write` reads.
  virtual void initial_values(const TensorWriter& write) const = 0;

  /// Says what this rank is about to assemble, so that a task that reads files can begin to. Nothing depends on it but
  /// time.
  virtual void read_ahead(const ExpectedBatches& /*expected*/) const {}
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
