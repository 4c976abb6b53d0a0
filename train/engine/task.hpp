#pragma once

#include "core/base/files/file_reader.hpp"
#include "core/batch.hpp"
#include "nn/model.hpp"
#include "train/engine/metrics.hpp"
#include "train/engine/model_exporter.hpp"
#include "train/engine/samples/sample_stream.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The interface between the engine and a task, which provides the model, the samples and the scores. The trainer,
/// sharding strategies, memory plan and optimizers use only this interface. A task does not depend on ranks.
namespace mylos::train {

/// An evaluation of a model: samples to predict, in batches that any rank may compute.
class Evaluation {
 public:
  virtual ~Evaluation() = default;

  /// Returns the number of batches, at least one.
  virtual std::size_t batches() const = 0;
  /// Returns a shape that no batch exceeds.
  virtual BatchShape largest_batch() const = 0;
  /// Announces the batches that this rank will request, in order: `first`, `first + stride`, ..., and afterwards
  /// possibly the last batch of the evaluation. An evaluation that reads files can start reading.
  virtual void read_ahead(std::size_t /*first*/, std::size_t /*stride*/) const {}
  /// Makes batch `index`. Depends on the index alone.
  virtual void assemble(std::size_t index, Batch& batch) const = 0;
  /// Takes the model's outputs for batch `index` (row-major, see Model::predict) and the loss of each sample. Called on
  /// the first rank only, for all batches of an evaluation in order.
  virtual void take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) = 0;
  /// Returns the metrics of the batches taken, in the order of kinds(). Leaves out metrics that the samples do not
  /// support.
  virtual Metrics score() = 0;
  /// Describes the metrics. The first is the loss, used by `--best-by loss`.
  virtual std::span<const MetricKind> kinds() const = 0;
  /// Returns an upper bound of the bytes needed on the first rank to score and to write the results.
  virtual std::size_t kept_bytes() const { return 0; }
};

/// Reads the values of a tensor from element `first` on.
using ValueReader = std::function<void(std::size_t first, std::span<float> values)>;

/// Receives the initial values of parameter and state tensors by name. Reads the elements it needs, in pieces, before
/// the call returns, so that a task can leave a tensor of hundreds of megabytes in its file.
class TensorWriter {
 public:
  using Take = std::function<void(const std::string& name, const ValueReader& read)>;

  explicit TensorWriter(Take take) : take_(std::move(take)) {}

  void operator()(const std::string& name, const ValueReader& read) const { take_(name, read); }
  /// Passes a whole tensor that is in memory.
  void operator()(const std::string& name, std::span<const float> values) const;

 private:
  Take take_;
};

/// The batches that a rank will request from a task, from a step on.
struct ExpectedBatches {
  std::size_t first_step = 0, steps = 0;  ///< steps [first_step, steps)
  /// Returns the samples of each micro-batch that this rank makes in a step, in order. Callable from any thread; refers
  /// only to the task.
  std::function<std::vector<std::vector<std::size_t>>(std::size_t step)> batches_of = {};
};

/// Notes about a data set that ranks take as they read it, such as checksums of files. On resume they show whether the
/// data have changed. See data_notes.hpp.
class DataNotes {
 public:
  virtual ~DataNotes() = default;

  /// Returns the name of the file beside the checkpoints.
  virtual std::string file_name() const = 0;
  /// Returns what this rank has noted since the last call.
  virtual std::string take() = 0;
  /// Adds what ranks have taken to the notes of the first rank, in any order. Errors: std::runtime_error if ranks have
  /// read different data.
  virtual void add(std::string_view taken) = 0;
  /// Returns all notes of the first rank, as stored in the file.
  virtual std::string text() = 0;
  /// Takes over notes that were read from `file`, on every rank. Errors: std::runtime_error if they are damaged.
  virtual void restore(const std::string& text, const std::filesystem::path& file) = 0;
  /// Compares the data with the notes, on the first rank. Errors: std::runtime_error if they differ.
  virtual void compare() = 0;

  bool is_saved = false;  ///< on the first rank: the file that was last written holds text()
};

class Task : public SampleStream {
 public:
  virtual const nn::Model& model() const = 0;
  /// Passes the tensors with known values (pretrained weights) to `write`; all others start from their initialisers.
  /// The set of tensors, and the errors found before the first read, do not depend on what `write` reads.
  virtual void initial_values(const FileReader& files, const TensorWriter& write) const = 0;
  /// Returns the directory of the model whose adapters are trained, from which all frozen values are; empty if the
  /// model itself is trained.
  virtual std::string adapted_model() const { return {}; }
  /// Reads what describes the initial values, such as the headers of weight files. The first rank does this, and all
  /// ranks use copies of what it has read in initial_values.
  virtual void read_weight_headers(const FileReader& /*files*/) const {}

  /// Announces the batches that this rank will assemble, so that a task that reads files can start reading. A hint that
  /// affects only speed.
  virtual void read_ahead(const ExpectedBatches& /*expected*/) const {}
  /// Makes the batch of these training samples of `step`; `ids` are their positions in the global batch. Augmentation
  /// must be a function of the seed, the step and the sample.
  virtual void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                        Batch& batch) const = 0;

  /// Returns the notes about data that are read during the run.
  virtual std::vector<DataNotes*> data_notes() const { return {}; }

  /// Returns the evaluation, or null if there is none.
  virtual Evaluation* evaluation() const = 0;
  /// Describes the share of labels that the model predicts in training (Pass::hits); nullopt if it is not counted. The
  /// name begins with training_prefix.
  virtual std::optional<MetricKind> training_score() const { return std::nullopt; }
  /// Writes the answers and scores of the last evaluation into `directory`. Each file is written completely or not at
  /// all.
  virtual void write_results(const std::filesystem::path& directory) const = 0;
  /// Returns a short JSON form of the last evaluation's answers, for comparing evaluations; empty if there is none.
  virtual std::string short_answers() const { return {}; }
  /// Returns the exporter of the model; null if the task exports none.
  virtual const ModelExporter* exporter() const = 0;
};

}  // namespace mylos::train
