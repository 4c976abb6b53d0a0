#pragma once

#include "core/batch.hpp"
#include "nn/model.hpp"

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// The seam between the engine and what is learned: a task brings the model, the samples and the scores. The trainer,
/// parameter modes, memory plan and optimizers know nothing else.
namespace mylos::train {

/// Named results of an evaluation, in the order they are shown.
using Metrics = std::vector<std::pair<std::string, double>>;

/// The metric called `name`, or nothing.
const double* find_metric(const Metrics& metrics, const std::string& name);

/// Runs the model forward for an evaluation.
class Predictor {
 public:
  virtual ~Predictor() = default;
  /// The model's outputs (row-major, as Model::predict says) for a batch, and with `losses` (S) each sample's loss.
  /// The span is valid until the next call.
  virtual std::span<const float> predict(const Batch& batch, std::span<float> losses) = 0;
};

/// Gives an export the values of the row called `name` from its element `first` on, parameters and state alike.
using RowReader = std::function<void(const std::string& name, std::size_t first, std::span<float> values)>;
/// Takes the initial values of the row called `name`, parameters and state alike.
using RowWriter = std::function<void(const std::string& name, std::span<const float> values)>;

class Task {
 public:
  virtual ~Task() = default;

  virtual const nn::Model& model() const = 0;
  /// Gives `write` the rows whose values are known, from pretrained weights; the others begin from their initialisers.
  virtual void initial_values(const RowWriter& write) const = 0;

  /// Steps of one pass over the training samples.
  virtual std::size_t steps_per_epoch() const = 0;
  /// The samples of the global batch of `step` (from 0), in order: a function of the seed and the step alone.
  virtual std::vector<std::size_t> global_batch(std::size_t step) const = 0;
  /// Rows (tokens) that a training sample takes in a batch.
  virtual std::size_t rows_of(std::size_t sample) const = 0;
  /// What the summed losses of these samples are divided by.
  virtual double weight(std::span<const std::size_t> samples) const = 0;
  /// Makes the batch of these training samples; ids are their places in the global batch.
  virtual void assemble(std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                        Batch& batch) const = 0;

  /// The largest batch that `evaluate` predicts; without samples there is nothing to evaluate.
  virtual BatchShape evaluation_shape() const = 0;
  virtual Metrics evaluate(Predictor& predictor) = 0;
  /// Writes the last evaluation's answers and scores into `directory`, each file whole or not at all.
  virtual void write_results(const std::filesystem::path& directory) const = 0;
  /// Writes the model for other programs into `directory`, which is replaced whole.
  virtual void export_model(const std::filesystem::path& directory, const RowReader& read_row) const = 0;
};

}  // namespace mylos::train
