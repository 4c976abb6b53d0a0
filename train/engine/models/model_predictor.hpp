#pragma once

#include "core/arena.hpp"
#include "nn/model.hpp"
#include "parallel/communicator/communicator.hpp"
#include "train/engine/task.hpp"

#include <cstddef>
#include <functional>
#include <vector>

/// Runs a model over an evaluation with the parameters in a store. Every call is collective.
namespace mylos::train {

/// Returns the signal that asks this rank to stop, or 0.
using StopQuestion = std::function<int()>;

/// The outcome of a pass over all batches, the same on every rank.
struct PredictionEnd {
  int signal = 0;      ///< the largest signal received by any rank before the end, or 0
  bool finite = true;  ///< false if the pass ended at outputs that are not finite

  bool complete() const { return signal == 0 && finite; }
};

class ModelPredictor {
 public:
  /// The arguments must outlive this object. No batch may exceed `largest`.
  ModelPredictor(parallel::Communicator& ranks, const ExecutionSpace& space, const nn::Model& model,
                 const ParameterStore& store, UnitHooks& hooks, const Gemm& gemm, Arena& arena,
                 const BatchShape& largest);

  /// Predicts each batch of `evaluation` on one of the ranks. The first rank takes all outputs in batch order, so that
  /// results do not depend on the number of ranks. After each batch the ranks agree on whether to stop; if they stop,
  /// the outputs taken so far are invalid. Errors: those of Evaluation::take, on every rank.
  PredictionEnd predict(Evaluation& evaluation, const StopQuestion& stop);
  /// Predicts all batches. Errors: also if outputs are not finite.
  void predict(Evaluation& evaluation);
  /// Scores a complete prediction on the first rank and returns the metrics on all ranks.
  Metrics score(Evaluation& evaluation);
  /// Predicts all batches and scores them.
  Metrics evaluate(Evaluation& evaluation);

  /// Returns the seconds of the last prediction, without scoring.
  double seconds() const { return seconds_; }

 private:
  /// The result of this rank's batch, as sent to the other ranks.
  struct Counts {
    std::size_t outputs = 0;
    std::size_t losses = 0;
    bool finite = true;
  };

  Counts forward(const Evaluation& evaluation, std::size_t batch);
  PredictionEnd exchange(const Counts& own, int signal);
  void gather_outputs(std::size_t taken);
  std::span<const float> outputs_of(std::size_t rank) const;
  std::span<const float> losses_of(std::size_t rank) const;

  parallel::Communicator& ranks_;
  const nn::Model& model_;
  nn::Pass pass_;
  Batch batch_;
  Matrix<float> outputs_;  ///< outputs of the last batch, in the arena
  Vector<float> losses_;
  std::vector<std::int64_t> counts_;  ///< outputs, losses, signal and finiteness of every rank
  std::size_t slot_ = 0;              ///< elements per rank in `gathered_`
  HostVector<float> gathered_;        ///< outputs, then losses: of every rank on the first rank, of this rank elsewhere
  double seconds_ = 0.0;
};

}  // namespace mylos::train
