#pragma once

#include "core/arena.hpp"
#include "nn/model.hpp"
#include "parallel/communicator/communicator.hpp"
#include "train/engine/task.hpp"

#include <cstddef>
#include <functional>
#include <vector>

/// Runs a model, whose parameters are in a store, over what a task has to evaluate. Every call is collective.
namespace mylos::train {

/// Returns the signal that is to stop the work of this rank, or 0.
using StopQuestion = std::function<int()>;

/// How a pass over all batches ended, the same on every rank.
struct PredictionEnd {
  int signal = 0;      ///< that stopped it before the end: the largest that came to a rank
  bool finite = true;  ///< false where it ended at outputs that are not finite numbers

  bool complete() const { return signal == 0 && finite; }
};

class ModelPredictor {
 public:
  /// All outlive it. Batches are at most as large as `largest`.
  ModelPredictor(parallel::Communicator& ranks, const ExecutionSpace& space, const nn::Model& model,
                 const ParameterStore& store, UnitHooks& schedule, const Gemm& gemm, Arena& arena,
                 const BatchShape& largest);

  /// Predicts each batch of `evaluation` on one of the ranks; the first rank takes all outputs, batch by batch, so that
  /// what they say does not depend on the number of ranks. After each batch the ranks agree on whether one of them is
  /// to stop; what was taken so far is then void. Errors: those of Evaluation::take, on every rank.
  PredictionEnd predict(Evaluation& evaluation, const StopQuestion& stop);
  /// Predicts to the end. Errors: also outputs that are not finite.
  void predict(Evaluation& evaluation);
  /// Scores, on the first rank, what was predicted to the end: the same metrics on all.
  Metrics score(Evaluation& evaluation);
  /// Predicts to the end and scores.
  Metrics evaluate(Evaluation& evaluation);

  /// Seconds that the last predictions took: not what scoring them did.
  double seconds() const { return seconds_; }

 private:
  /// What one rank predicted, as the others hear of it.
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
  Matrix<float> outputs_;  ///< of the last batch, in the arena
  Vector<float> losses_;
  std::vector<std::int64_t> counts_;  ///< outputs, losses, signal and finiteness of every rank
  std::size_t slot_ = 0;              ///< elements of `gathered_` for each rank
  HostVector<float> gathered_;        ///< outputs and then losses: of every rank on the first one, else of this rank
  double seconds_ = 0.0;
};

}  // namespace mylos::train
